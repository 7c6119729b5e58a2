// Charts of the same rows: what is selected in one is marked in all, and keys walk along the first.
const LINKED = {charts: [], row: -1, order: [], panel: () => [], said: () => ""};

// `spec`: x and y by row; labels; logarithmic axes; marks by group of rows; a line to hold them against; text and columns to read.
function linkedChart(holder, spec) {
  const c = colours();
  const plot = figure({height: spec.height ?? 300, x_axis_type: spec.xLog ? "log" : "linear", y_axis_type: spec.yLog ? "log" : "linear", toolbar_location: spec.small ? null : "above",
    y_range: new Bokeh.DataRange1d({range_padding: spec.small ? 0.2 : 0.1})}, spec.xLabel, spec.yLabel);
  plainTicks(plot.xaxis, spec.xLog, plot);
  plainTicks(plot.yaxis, spec.yLog);
  if (spec.small && spec.xLog) plot.xaxis.ticker = new Bokeh.FixedTicker({ticks: fewTicks(spec.x)});
  for (const {slope, dash} of spec.lines ?? []) drawLine(plot, spec, slope, dash, c);
  const crowded = spec.groups.reduce((sum, group) => sum + group.rows.length, 0) > 1500;
  const marks = spec.groups.map(group => {
    const source = new Bokeh.ColumnDataSource({data: {x: group.rows.map(row => spec.x[row]), y: group.rows.map(row => spec.y[row]),
      what: group.rows.map(spec.what)}});
    const named = group.label ? {legend_label: group.label} : {};
    return plot.scatter({field: "x"}, {field: "y"}, {source, marker: group.marker, size: group.size * (crowded ? 0.6 : 1), fill_color: group.colour,
      fill_alpha: crowded ? 0.3 : 0.6, line_color: crowded ? null : group.colour, ...named});
  });
  const cursor = new Bokeh.ColumnDataSource({data: {x: [], y: []}});
  plot.scatter({field: "x"}, {field: "y"}, {source: cursor, marker: "circle_cross", size: 20, fill_color: null, line_color: c.ink, line_width: 1.5});
  plot.add_tools(new Bokeh.HoverTool({renderers: marks, attachment: "horizontal", tooltips: [["", "@what"], [spec.xLabel, "@x{0,0.[0000]}"], [spec.yLabel, "@y{0,0.[0000]}"]]}));
  const chart = {plot, spec, cursor};
  plot.on_event("tap", event => chooseNear(chart, event));
  LINKED.charts.push(chart);
  drawn(holder, plot);
}

// At most five values of a logarithmic axis: what the rows hold where that is little, else 1, 2, 5 and their multiples of ten.
function fewTicks(values) {
  const held = [...new Set(values)].filter(value => value > 0).sort((a, b) => a - b);
  if (held.length <= 4) return held;
  const low = held[0] * (1 - 1e-9), high = held[held.length - 1] * (1 + 1e-9), found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    for (const digit of [1, 2, 5]) if (digit * 10 ** power >= low && digit * 10 ** power <= high) found.push(digit * 10 ** power);
  const step = Math.ceil(found.length / 5);
  return found.length > 1 ? found.filter((_, i) => i % step === 0) : [held[0], held[held.length - 1]];
}

function drawLine(plot, spec, slope, dash, c) {
  if (slope === 0) {
    plot.add_layout(new Bokeh.Span({location: 0, dimension: "width", line_color: c.quiet, line_width: 1, line_dash: dash}));
    return;
  }
  const shown = spec.groups.flatMap(({rows}) => rows.flatMap(row => [spec.x[row], spec.y[row]])).filter(Number.isFinite);
  const ends = [Math.min(...shown), Math.max(...shown)];
  if (!shown.length) return;
  const source = new Bokeh.ColumnDataSource({data: {x: ends, y: ends.map(end => end * slope)}});
  plot.line({field: "x"}, {field: "y"}, {source, line_color: c.quiet, line_width: 1, line_dash: dash});
}

function chooseNear({plot, spec}, event) {
  const row = nearest(event, plot, spec.xLog, spec.yLog, spec.groups.flatMap(({rows}) => rows), spec.x, spec.y);
  if (row >= 0) choose(row);
}

function choose(row) {
  LINKED.row = row;
  markChosen();
  const panel = document.getElementById("panel");
  panel.dataset.index = row < 0 ? "" : String(row);
  panel.replaceChildren(make("h2", {}, "Selected row"), ...(row < 0 ? [make("p", {class: "quiet"}, "Click a point: its row is taken apart here.")] : LINKED.panel(row)));
  explainWords(panel);
  foldTables();
  document.getElementById("said").textContent = row < 0 ? "Nothing selected" : LINKED.said(row);
}

function markChosen() {
  const row = LINKED.row;
  for (const {spec, cursor} of LINKED.charts) {
    const holds = row >= 0 && spec.groups.some(group => group.rows.includes(row));
    cursor.data = {x: holds ? [spec.x[row]] : [], y: holds ? [spec.y[row]] : []};
  }
}

function walk(event) { walkAlong(event, LINKED.order, LINKED.row, choose); }

// Large counts in thousands of millions, so that an axis can be read.
function readable(name, values) {
  return /parameters|tokens/.test(name) && Math.max(...values) >= 1e8 ? {label: `${name} (G)`, values: values.map(value => value / 1e9)} : {label: name, values};
}

function menuOf(id, label, options, chosen, change) {
  const made = make("select", {id, "aria-label": label}, ...options.map((name, k) => make("option", {value: k, selected: k === chosen}, name)));
  made.addEventListener("change", () => change(Number(made.value)));
  return make("label", {}, `${label} `, made);
}

function everyRow(n) { return Array.from({length: n}, (_, row) => row); }

function redrawn(draw) {
  LINKED.charts = [];
  draw();
  markChosen();
}
