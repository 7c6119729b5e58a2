// A device study's page: the exact frontier of every case as steps, a loss holds until a dearer design lowers it; marks are the picks.
function drawFrontiers() {
  const holder = document.getElementById("frontiers"), c = colours();
  const plot = figure({height: 520, x_axis_type: "log", tools: "pan,box_zoom,wheel_zoom,reset,save", active_scroll: null, active_drag: "box_zoom"},
    DATA.xLabel, DATA.yLabel);
  plainTicks(plot.xaxis, true);
  plainTicks(plot.yaxis, false);
  const read = [];
  DATA.cases.forEach((one, i) => {
    if (one.n === 0) return;
    const {colour, marker, dash} = series(i), x = decoded(one.x), y = decoded(one.y), named = n => Array(n).fill(one.name);
    const source = new Bokeh.ColumnDataSource({data: {x, y, name: named(one.n)}});
    plot.step({field: "x"}, {field: "y"}, "after", {source, line_color: colour, line_dash: dash, line_width: 1.5, legend_label: one.name});
    read.push(plot.scatter({field: "x"}, {field: "y"}, {source, marker: "circle", size: 4, fill_color: colour, line_color: null, fill_alpha: 0.5,
      legend_label: one.name}));
    if (one.pick.length) {
      const pick = new Bokeh.ColumnDataSource({data: {x: [one.pick[0]], y: [one.pick[1]], name: named(1)}});
      read.push(plot.scatter({field: "x"}, {field: "y"}, {source: pick, marker, size: 11, fill_color: c.ground, line_color: colour, line_width: 2,
        legend_label: one.name}));
    }
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: read, tooltips: [["case", "@name"], [DATA.xLabel, "@x{0,0.00}"], [DATA.yLabel, "@y{0.0000}"]]}));
  legendBeside(plot, c);
  plot.legend.location = "top_right";
  drawn(holder, plot);
}

if (DATA.cases?.some(one => one.n > 0)) {
  drawFrontiers();
  whenThemeChanges(drawFrontiers);
}
document.documentElement.dataset.loaded = "yes";
performance.mark("interactive");
