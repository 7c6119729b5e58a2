// Frontiers of several runs over one another; each has a colour, a marker and a dash of its own.
const RUNS = DATA.runs.map(run => ({...run, metrics: decodedAll(run.metrics), shape: decodedAll(run.shape)}));
const EXACT = DATA.exact && {...DATA.exact, metrics: decodedAll(DATA.exact.metrics), shape: decodedAll(DATA.exact.shape)};
const VIEW = {axes: DATA.axes.slice()};
const NAMED = 24;

function sourceOf(run) {
  const [x, y] = VIEW.axes, order = Array.from({length: run.n}, (_, i) => i);
  order.sort((a, b) => run.metrics[x][a] - run.metrics[x][b] || run.metrics[y][b] - run.metrics[y][a]);
  return new Bokeh.ColumnDataSource({data: {
    x: Float64Array.from(order, i => run.metrics[x][i]), y: Float64Array.from(order, i => run.metrics[y][i]),
    design: order.map(i => designText(run.shape, i)), run: order.map(() => run.name),
  }});
}

function drawOverlay() {
  const holder = document.getElementById("overlay"), c = colours(), [x, y] = VIEW.axes.map(metricOf);
  const plot = figure({height: 560, x_axis_type: x.log ? "log" : "linear", y_axis_type: y.log ? "log" : "linear"}, x.label, y.label);
  plainTicks(plot.xaxis, x.log, plot);
  plainTicks(plot.yaxis, y.log);
  const hovered = [];
  if (EXACT && EXACT.n) plot.scatter({field: "x"}, {field: "y"}, {source: sourceOf({...EXACT, name: "exact"}), marker: "circle", size: 11,
    fill_color: null, line_color: c.exact, legend_label: "exact frontier"});
  RUNS.forEach((run, i) => {
    if (!run.n) return;
    const source = sourceOf(run), {colour, marker, dash} = series(i), named = RUNS.length <= NAMED ? {legend_label: run.name} : {};
    if (DATA.curve && DATA.curve.every(name => VIEW.axes.includes(name))) plot.step({field: "x"}, {field: "y"}, "after",
      {source, line_color: colour, line_width: 1.5, line_dash: dash, ...named});
    hovered.push(plot.scatter({field: "x"}, {field: "y"}, {source, marker, size: 6, fill_color: colour,
      line_color: colour, fill_alpha: 0.8, ...named}));
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: hovered, tooltips: [["run", "@run"], ["design", "@design"], [x.name, "@x{0,0.0000}"], [y.name, "@y{0,0.0000}"]]}));
  drawn(holder, plot);
}

axisMenus(VIEW.axes, drawOverlay);
drawOverlay();
whenThemeChanges(drawOverlay);
