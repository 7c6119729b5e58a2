// The frontier, the strips of parameters along it, and the convergence, drawn by BokehJS.
const ROWS = {n: DATA.rows.n, index: decoded(DATA.rows.index), metrics: decodedAll(DATA.rows.metrics), shape: decodedAll(DATA.rows.shape)};
const FRONTIER = Array.from(decoded(DATA.frontier));
const ON_FRONTIER = new Set(FRONTIER);
const MISSED = DATA.exact && {metrics: decodedAll(DATA.exact.metrics), shape: decodedAll(DATA.exact.shape)};
const CHART = {axes: DATA.axes.slice(), live: null, inside: new Uint8Array(ROWS.n).fill(1)};

function along() {
  const x = ROWS.metrics[CHART.axes[0]], y = ROWS.metrics[CHART.axes[1]];
  return FRONTIER.slice().sort((a, b) => x[a] - x[b] || y[b] - y[a]);
}

function values(rows, name) { return Float64Array.from(rows, row => ROWS.metrics[name][row]); }

function pointSource(rows) {
  const [x, y] = CHART.axes;
  return new Bokeh.ColumnDataSource({data: {
    x: values(rows, x), y: values(rows, y), design: rows.map(row => designText(ROWS.shape, row)),
  }});
}

function dots(rows) {
  const [x, y] = CHART.axes;
  return {x: values(rows, x), y: values(rows, y)};
}

function split() {
  const inside = [], outside = [];
  for (let row = 0; row < ROWS.n; row++) if (!ON_FRONTIER.has(row)) (CHART.inside[row] ? inside : outside).push(row);
  return [inside, outside];
}

function drawFrontier() {
  const holder = document.getElementById("frontier");
  if (!holder) return;
  const c = colours(), [x, y] = CHART.axes.map(metricOf);
  const plot = figure({height: 460, x_axis_type: x.log ? "log" : "linear", y_axis_type: y.log ? "log" : "linear",
    y_range: new Bokeh.DataRange1d({range_padding: 0.2})}, x.label, y.label);
  plainTicks(plot.xaxis, x.log, plot);
  plainTicks(plot.yaxis, y.log);
  const live = CHART.live = {plot, x, y};
  const [inside, outside] = split();
  live.outside = new Bokeh.ColumnDataSource({data: dots(outside)});
  live.inside = new Bokeh.ColumnDataSource({data: dots(inside)});
  plot.x({field: "x"}, {field: "y"}, {source: live.outside, size: 5, line_color: c.evaluated, line_alpha: 0.45,
    legend_label: "evaluated, over a budget"});
  plot.scatter({field: "x"}, {field: "y"}, {source: live.inside, marker: "circle", size: 3.5, fill_color: c.evaluated, line_color: null,
    legend_label: "evaluated"});
  const hovered = [...drawExact(plot, c), ...drawOwn(plot, c)];
  hovered.push(...drawBaselines(plot, c), ...drawPicks(plot, c));
  nameMarks(plot, namesShown(c), x.log, y.log, live.order.map(row => ({x: ROWS.metrics[x.name][row], y: ROWS.metrics[y.name][row]})));
  live.pick = new Bokeh.ColumnDataSource({data: {x: [], y: []}});
  plot.scatter({field: "x"}, {field: "y"}, {source: live.pick, marker: "star", size: 19, fill_color: c.pick, line_color: c.ground,
    legend_label: "pick within the moved budgets"});
  live.cursor = new Bokeh.ColumnDataSource({data: {x: [], y: []}});
  plot.scatter({field: "x"}, {field: "y"}, {source: live.cursor, marker: "circle_cross", size: 20, fill_color: null, line_color: c.ink,
    line_width: 1.5, legend_label: "selected"});
  plot.add_tools(new Bokeh.HoverTool({renderers: hovered, attachment: "horizontal", tooltips: [
    ["design", "@design"], [x.name, "@x{0,0.0000}"], [y.name, "@y{0,0.0000}"]]}));
  live.limits = ["height", "width"].map(dimension => {
    const line = new Bokeh.Span({location: 1, dimension, visible: false, level: "underlay", line_color: c.pick, line_dash: "dashed", line_width: 1.5});
    plot.add_layout(line);
    return line;
  });
  plot.on_event("tap", event => selectNear(event));
  drawn(holder, plot, drawStrips(plot, c));
}

function drawOwn(plot, c) {
  const rows = along(), source = pointSource(rows);
  CHART.live.order = rows;
  if (!rows.length) return [];
  const two = DATA.objectives.length === 2 && DATA.objectives.every(name => CHART.axes.includes(name));
  if (two) plot.step({field: "x"}, {field: "y"}, "after", {source, line_color: c.frontier, line_width: 1.4, legend_label: DATA.frontierName});
  const bars = lossInterval(rows);
  if (bars) plot.segment({field: "x"}, {field: "low"}, {field: "x"}, {field: "high"}, {source: bars, line_color: c.frontier, line_alpha: 0.35,
    legend_label: `nine of ten ${DATA.details.interval.of}`});
  if (ROWS.shape.device) return drawDevices(plot, rows);
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "circle", size: 6, fill_color: c.frontier, line_color: null,
    legend_label: DATA.frontierName})];
}

// The frontier's designs by the device that each is on; beyond eight devices markers tell them apart too.
function drawDevices(plot, rows) {
  return DATA.words.device.map((name, i) => {
    const own = rows.filter(row => ROWS.shape.device[row] === i);
    if (!own.length) return null;
    const {colour, marker} = series(i), source = pointSource(own);
    return plot.scatter({field: "x"}, {field: "y"}, {source, marker: DATA.words.device.length > 8 ? marker : "circle", size: 6, fill_color: colour,
      line_color: null, legend_label: `on ${name} (${own.length})`});
  }).filter(made => made !== null);
}

function lossInterval(rows) {
  if (CHART.axes[1] !== "loss" || !DETAILS.low) return null;
  const known = rows.filter(row => DETAILED.has(row));
  const end = column => known.map(row => column[DETAILED.get(row)]);
  return new Bokeh.ColumnDataSource({data: {x: values(known, CHART.axes[0]), low: end(DETAILS.low), high: end(DETAILS.high)}});
}

function drawExact(plot, c) {
  if (!MISSED) return [];
  const [x, y] = CHART.axes, found = Array.from(decoded(DATA.exact.found));
  if (found.length) plot.scatter({field: "x"}, {field: "y"}, {source: new Bokeh.ColumnDataSource({data: dots(found)}), marker: "circle", size: 9, fill_color: null,
    line_color: c.exact, line_width: 1, legend_label: `exact frontier, found (${DATA.exact.common})`});
  const n = MISSED.shape.depth.length;
  if (!n) return [];
  const source = new Bokeh.ColumnDataSource({data: {x: MISSED.metrics[x], y: MISSED.metrics[y],
    design: Array.from({length: n}, (_, i) => designText(MISSED.shape, i))}});
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "triangle", size: n > 300 ? 6 : 11, fill_color: c.exact, line_color: c.ground,
    legend_label: `exact frontier, missed (${DATA.exact.total - DATA.exact.common})`})];
}

// Published models that have both metrics.
function baselinesShown() {
  const [x, y] = CHART.axes;
  return DATA.baselines.filter(known => known.metrics[x] != null && known.metrics[y] != null);
}

function drawBaselines(plot, c) {
  const [x, y] = CHART.axes, shown = baselinesShown();
  if (!shown.length) return [];
  const source = new Bokeh.ColumnDataSource({data: {x: shown.map(k => k.metrics[x]), y: shown.map(k => k.metrics[y]), design: shown.map(k => k.label)}});
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "diamond", size: 13, fill_color: c.baseline, line_color: c.ground,
    legend_label: "published model"})];
}

function drawPicks(plot, c) {
  if (!DATA.picks.length) return [];
  const source = new Bokeh.ColumnDataSource({data: {...dots(DATA.picks.map(pick => pick.row)), design: DATA.picks.map(pick => pick.labels.join(", "))}});
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "square", size: 12, fill_color: null, line_color: c.pick, line_width: 2,
    legend_label: "answers"})];
}

function namesShown(c) {
  const [x, y] = CHART.axes, at = row => ({x: ROWS.metrics[x][row], y: ROWS.metrics[y][row]});
  return [...DATA.picks.map(pick => ({...at(pick.row), name: pick.labels.join(", "), colour: c.pick})),
    ...baselinesShown().map(known => ({x: known.metrics[x], y: known.metrics[y], name: known.label + (known.extrapolates ? "*" : ""), colour: c.baseline}))];
}

function drawStrips(plot, c) {
  CHART.live.strips = [];
  if (FRONTIER.length < 2 || CHART.axes[0] !== DATA.axes[0]) return [];
  const rows = along(), x = values(rows, CHART.axes[0]);
  return DATA.evolving.map((strip, i) => {
    const last = i === DATA.evolving.length - 1;
    const made = figure({height: last ? 132 : 96, title: strip.label, x_range: plot.x_range, x_axis_type: metricOf(CHART.axes[0]).log ? "log" : "linear", toolbar_location: null,
      y_range: new Bokeh.DataRange1d({range_padding: 0.35}), tools: ""}, last ? metricOf(CHART.axes[0]).label : null, null);
    plainTicks(made.xaxis, metricOf(CHART.axes[0]).log, made);
    made.xaxis.visible = last;
    Object.assign(made.title, {text_font_size: "12px", text_font_style: "normal", text_color: c.ink, standoff: 2});
    made.yaxis.ticker = new Bokeh.BasicTicker({desired_num_ticks: 3});
    const shown = Float64Array.from(rows, row => parameter(strip.name, row));
    const median = new Bokeh.ColumnDataSource({data: {x: decoded(strip.x), y: decoded(strip.median)}});
    const points = new Bokeh.ColumnDataSource({data: {x, y: shown}});
    made.line({field: "x"}, {field: "y"}, {source: median, line_color: c.frontier, line_width: 1.4});
    made.scatter({field: "x"}, {field: "y"}, {source: points, marker: "circle", size: 4, fill_color: c.frontier, fill_alpha: 0.45, line_color: null});
    const cursor = new Bokeh.ColumnDataSource({data: {x: [], y: []}});
    made.scatter({field: "x"}, {field: "y"}, {source: cursor, marker: "circle_cross", size: 13, fill_color: null, line_color: c.ink, line_width: 1.5});
    CHART.live.strips.push({name: strip.name, cursor});
    return made;
  });
}

function parameter(name, row) {
  const s = ROWS.shape;
  if (name === "query_dim") return s.n_heads[row] * s.head_dim[row];
  if (name === "n_full") return fullLayers(s, row);
  if (name === "tokens") return s.tokens[row] / 1e9;
  return name === "ffn_ratio" ? s.top_k[row] * s.expert_size[row] / s.width[row] : s[name][row];
}

function drawConvergence() {
  const holder = document.getElementById("convergence");
  if (!holder || !DATA.convergence) return;
  const c = colours(), d = DATA.convergence;
  const plot = figure({height: 260, x_axis_type: "log", y_axis_type: d.log ? "log" : "linear", toolbar_location: null, tools: ""},
    "Distinct architectures evaluated", d.label);
  plainTicks(plot.xaxis, true, plot);
  plainTicks(plot.yaxis, d.log);
  const source = new Bokeh.ColumnDataSource({data: {x: decoded(d.counts), y: decoded(d.values)}});
  plot.line({field: "x"}, {field: "y"}, {source, line_color: c.frontier, line_width: 1.6});
  const marks = plot.scatter({field: "x"}, {field: "y"}, {source, marker: "circle", size: 6, fill_color: c.frontier, line_color: null});
  plot.add_tools(new Bokeh.HoverTool({renderers: [marks], tooltips: [["evaluated", "@x{0,0}"], [d.label, "@y{0.00000}"]]}));
  drawn(holder, plot);
}

// Where a click lands: the nearest member of the frontier on the screen, none beyond 30 pixels.
function selectNear(event) {
  const {plot, x, y, order} = CHART.live;
  const at = (u, v) => [pixel(u, plot.x_range, x.log, plot.inner_width), pixel(v, plot.y_range, y.log, plot.inner_height)];
  const [px, py] = at(event.x, event.y);
  let best = -1, least = 30;
  for (const row of order) {
    const [qx, qy] = at(ROWS.metrics[x.name][row], ROWS.metrics[y.name][row]);
    const far = Math.hypot(qx - px, qy - py);
    if (far < least) [best, least] = [row, far];
  }
  if (best >= 0) select(best);
}

function showCursor(row) {
  const live = CHART.live;
  if (!live) return;
  const x = row < 0 ? [] : [ROWS.metrics[live.x.name][row]];
  live.cursor.data = {x, y: row < 0 ? [] : [ROWS.metrics[live.y.name][row]]};
  for (const strip of live.strips) strip.cursor.data = {x, y: row < 0 ? [] : [parameter(strip.name, row)]};
}

function showPick(row) {
  if (CHART.live) CHART.live.pick.data = dots(row < 0 ? [] : [row]);
}

// A dashed line where a budget limits an axis.
function showLimits(budgets) {
  if (!CHART.live) return;
  CHART.live.limits.forEach((line, place) => {
    const limits = budgets.filter(b => b.metric === CHART.axes[place]).map(b => b.limit);
    if (limits.length) line.location = Math.min(...limits);
    line.visible = limits.length > 0;
  });
}

function showInside() {
  if (!CHART.live) return;
  const [inside, outside] = split();
  CHART.live.inside.data = dots(inside);
  CHART.live.outside.data = dots(outside);
}
