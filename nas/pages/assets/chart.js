// The frontier with the recommended design, parameters along it, and the convergence, drawn by BokehJS.
const ROWS = {n: DATA.rows.n, index: decoded(DATA.rows.index), metrics: decodedAll(DATA.rows.metrics), shape: decodedAll(DATA.rows.shape)};
const FRONTIER = Array.from(decoded(DATA.frontier));
const ON_FRONTIER = new Set(FRONTIER);
const MISSED = DATA.exact && {metrics: decodedAll(DATA.exact.metrics), shape: decodedAll(DATA.exact.shape)};
const CHART = {axes: DATA.axes.slice(), live: null, inside: new Uint8Array(ROWS.n).fill(1), pick: -1, strips: []};

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

function at(row) { return {x: ROWS.metrics[CHART.axes[0]][row], y: ROWS.metrics[CHART.axes[1]][row]}; }

function split() {
  const inside = [], outside = [];
  for (let row = 0; row < ROWS.n; row++) if (!ON_FRONTIER.has(row)) (CHART.inside[row] ? inside : outside).push(row);
  return [inside, outside];
}

function drawFrontier() {
  const c = colours(), holder = document.getElementById("frontier"), [x, y] = CHART.axes.map(metricOf), range = padding => new Bokeh.DataRange1d({range_padding: padding, only_visible: true});
  const plot = figure({height: Math.max(380, Math.min(760, innerHeight - 200, 0.75 * holder.offsetWidth)), x_axis_type: x.log ? "log" : "linear",
    y_axis_type: y.log ? "log" : "linear", x_range: range(0.12), y_range: range(0.2)}, x.label, y.label);
  plainTicks(plot.xaxis, x.log, plot);
  plainTicks(plot.yaxis, y.log);
  const live = CHART.live = {plot, x, y};
  const [inside, outside] = split();
  live.outside = new Bokeh.ColumnDataSource({data: dots(outside)});
  live.inside = new Bokeh.ColumnDataSource({data: dots(inside)});
  plot.x({field: "x"}, {field: "y"}, {source: live.outside, size: 5, line_color: c.evaluated, line_alpha: 0.6,
    legend_label: DATA.budgets.some(b => b.metric === "extrapolation") ? "over a budget, or outside the evidence" : "over a budget"});
  plot.scatter({field: "x"}, {field: "y"}, {source: live.inside, marker: "circle", size: 4, fill_color: c.evaluated, line_color: null,
    legend_label: "evaluated"});
  const around = plot.renderers.length, hovered = [...drawExact(plot, c), ...drawOwn(plot, c), ...drawBaselines(plot, c), ...drawPicks(plot, c)];
  live.pick = new Bokeh.ColumnDataSource({data: dots([])});
  plot.scatter({field: "x"}, {field: "y"}, {source: live.pick, marker: "star", size: 30, fill_color: c.pick, line_color: c.ground, line_width: 2,
    legend_label: "recommended"});
  const framed = plot.renderers.slice(live.order.length > 2 ? around : 0); // what matters fills the frame
  live.name = nameMarks(plot, [c.pick, c.quiet, c.baseline], () => namesShown(c), x.log, y.log, live.order.map(at));
  plot.x_range.renderers = plot.y_range.renderers = framed;
  live.cursor = new Bokeh.ColumnDataSource({data: dots([])});
  plot.scatter({field: "x"}, {field: "y"}, {source: live.cursor, marker: "circle_cross", size: 20, fill_color: null, line_color: c.ink, line_width: 1.5});
  plot.add_tools(new Bokeh.HoverTool({renderers: hovered, attachment: "horizontal", tooltips: [
    ["design", "@design"], [x.name, "@x{0,0.0000}"], [y.name, "@y{0,0.0000}"]]}));
  live.limits = ["left", "bottom"].map(() => {
    const beyond = new Bokeh.BoxAnnotation({visible: false, level: "underlay", fill_color: c.outside, fill_alpha: 0.45, line_color: null});
    plot.add_layout(beyond);
    return beyond;
  });
  plot.on_event("tap", event => selectNear(event));
  drawn(holder, plot);
}

function drawOwn(plot, c) {
  const rows = along(), source = pointSource(rows);
  CHART.live.order = rows;
  if (!rows.length) return [];
  const two = DATA.objectives.length === 2 && DATA.objectives.every(name => CHART.axes.includes(name));
  if (two) plot.step({field: "x"}, {field: "y"}, "after", {source, line_color: c.frontier, line_width: 2.5, legend_label: DATA.frontierName});
  if (ROWS.shape.device) return drawDevices(plot, rows);
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "circle", size: rows.length > 60 ? 5 : 7, fill_color: c.frontier, line_color: null,
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

function drawExact(plot, c) {
  const [x, y] = CHART.axes, n = MISSED ? MISSED.shape.depth.length : 0;
  if (!n) return [];
  const source = new Bokeh.ColumnDataSource({data: {x: MISSED.metrics[x], y: MISSED.metrics[y],
    design: Array.from({length: n}, (_, i) => designText(MISSED.shape, i))}});
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "triangle", size: n > 300 ? 6 : 11, fill_color: c.exact, line_color: c.ground,
    legend_label: `exact frontier, missed (${DATA.exact.missed})`})];
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
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "diamond", size: 15, fill_color: c.baseline, line_color: c.ground,
    legend_label: `published model${shown.some(known => known.extrapolates) ? " (* the law extrapolates)" : ""}`})];
}

function drawPicks(plot, c) {
  if (!DATA.picks.length) return [];
  const source = new Bokeh.ColumnDataSource({data: {...dots(DATA.picks.map(pick => pick.row)), design: DATA.picks.map(pick => pick.labels.join(", "))}});
  return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: "square", size: 11, fill_color: null, line_color: c.pick, line_width: 2,
    legend_label: "answers of the run"})];
}

function namesShown(c) {
  const [x, y] = CHART.axes, {params_total, loss} = ROWS.metrics, row = CHART.pick;
  return [...(row < 0 ? [] : [{...at(row), name: `${spelled(params_total[row])} parameters, loss ${loss[row].toFixed(2)}`, colour: c.pick}]),
    ...DATA.picks.filter(pick => pick.row !== row).map(pick => ({...at(pick.row), name: pick.labels.join(", "), colour: c.quiet})),
    ...baselinesShown().map(known => ({x: known.metrics[x], y: known.metrics[y], name: known.label + (known.extrapolates ? "*" : ""), colour: c.baseline}))];
}

// Parameters along the frontier, a small figure each, once their fold is opened.
function drawStrips() {
  const holder = document.getElementById("strips"), c = colours();
  if (!holder?.closest("details").open) return;
  const across = metricOf(DATA.axes[0]), rows = FRONTIER.slice().sort((a, b) => ROWS.metrics[across.name][a] - ROWS.metrics[across.name][b]), x = values(rows, across.name);
  CHART.strips = DATA.evolving.map(strip => {
    const place = make("div", {class: "chart", id: `strip-${strip.name}`}), source = data => new Bokeh.ColumnDataSource({data}), cursor = source({x: [], y: []});
    const made = figure({height: 190, title: strip.label, x_axis_type: across.log ? "log" : "linear", toolbar_location: null,
      y_range: new Bokeh.DataRange1d({range_padding: 0.35}), tools: ""}, across.label, null);
    plainTicks(made.xaxis, across.log, made);
    Object.assign(made.title, {text_font_size: "13px", text_color: c.ink});
    made.yaxis.ticker = new Bokeh.BasicTicker({desired_num_ticks: 3});
    made.line({field: "x"}, {field: "y"}, {source: source({x: decoded(strip.x), y: decoded(strip.median)}), line_color: c.frontier, line_width: 1.4});
    made.scatter({field: "x"}, {field: "y"}, {source: source({x, y: Float64Array.from(rows, row => parameter(strip.name, row))}), marker: "circle", size: 4,
      fill_color: c.frontier, fill_alpha: 0.45, line_color: null});
    made.scatter({field: "x"}, {field: "y"}, {source: cursor, marker: "circle_cross", size: 13, fill_color: null, line_color: c.ink, line_width: 1.5});
    return {name: strip.name, cursor, place, made};
  });
  holder.replaceChildren(...CHART.strips.map(({place}) => place));
  for (const {place, made} of CHART.strips) drawn(place, made);
  showCursor(STATE.row);
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
  if (!holder?.closest("details").open) return;
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

function selectNear(event) {
  const {plot, x, y, order} = CHART.live, row = nearest(event, plot, x.log, y.log, order, ROWS.metrics[x.name], ROWS.metrics[y.name]);
  if (row >= 0) select(row);
}

// The selected design is marked where it is not the recommended one.
function showCursor(row) {
  CHART.live.cursor.data = dots(row < 0 || row === CHART.pick ? [] : [row]);
  for (const {name, cursor} of CHART.strips) cursor.data = row < 0 ? {x: [], y: []} : {x: [ROWS.metrics[DATA.axes[0]][row]], y: [parameter(name, row)]};
}

function showPick(row) {
  CHART.pick = row;
  CHART.live.pick.data = dots(row < 0 ? [] : [row]);
  CHART.live.name();
}

// Shade beyond a budget on an axis.
function showLimits(budgets) {
  CHART.live.limits.forEach((beyond, place) => {
    const limits = budgets.filter(b => b.metric === CHART.axes[place]).map(b => b.limit);
    if (limits.length) beyond[place ? "bottom" : "left"] = Math.min(...limits);
    beyond.visible = limits.length > 0;
  });
}

function showInside() {
  const [inside, outside] = split();
  CHART.live.inside.data = dots(inside);
  CHART.live.outside.data = dots(outside);
}
