// A fit's page: predicted and observed losses, residuals against each factor, one row taken apart, intervals of coefficients.
const FIT = {by: 0, rows: decodedAll(DATA.rows), factors: DATA.factors.map(f => ({name: f.name, values: decoded(f.values)})),
  terms: DATA.terms.map(t => ({name: t.name, values: decoded(t.values)}))};
const BY = [["predicted", "the fit"], ["unseen", "the fit to the other nine tenths"]];
const INFLUENTIAL = new Set(DATA.influential);
const RESIDUAL = DATA.inLog ? "observed − predicted (ln nats)" : "observed − predicted (nats)";

function called(row) {
  const name = DATA.names[row];
  return `line ${DATA.lines[row]}${name ? `, ${name}` : ""}`;
}

function groupsOf(size) {
  const c = colours(), every = everyRow(DATA.n);
  return [{rows: every.filter(row => !INFLUENTIAL.has(row)), marker: "circle", size, colour: c.frontier, label: size > 6 ? "rows" : null},
    {rows: every.filter(row => INFLUENTIAL.has(row)), marker: "diamond", size: size + 5, colour: c.exact, label: size > 6 ? "rows that matter most" : null}];
}

function drawRows() {
  const x = FIT.rows[BY[FIT.by][0]];
  LINKED.order = everyRow(DATA.n).sort((a, b) => FIT.rows.predicted[a] - FIT.rows.predicted[b]);
  linkedChart(document.getElementById("predicted"), {x, y: FIT.rows.observed, xLabel: "Predicted loss (nats per token)", yLabel: "Observed loss (nats per token)",
    height: 460, groups: groupsOf(7), lines: [{slope: 1, dash: "solid"}], what: called});
  const holders = document.getElementById("residuals"), shown = [...FIT.factors, {name: "predicted loss", values: FIT.rows.predicted}];
  holders.replaceChildren(...shown.map(factor => make("div", {class: "chart", role: "img", "aria-label": `Residuals against ${factor.name.replaceAll("_", " ")}`})));
  shown.forEach((factor, i) => {
    const {label, values} = readable(factor.name.replaceAll("_", " "), Float64Array.from(factor.values));
    linkedChart(holders.children[i], {x: values, y: FIT.rows.residual, xLabel: label, yLabel: RESIDUAL, xLog: i < FIT.factors.length, height: 230, small: true,
      groups: groupsOf(5), lines: [{slope: 0, dash: "solid"}], what: called});
  });
}

function drawIntervals() {
  const holder = document.getElementById("intervals"), shown = DATA.coefficients.slice().reverse();
  if (!holder || !shown.length) return;
  const c = colours(), names = shown.map(each => each.name);
  const ends = shown.flatMap(each => [...each.linear, ...each.bootstrap]).filter(Number.isFinite);
  const low = Math.max(Math.min(0, ...ends), -2), high = Math.min(Math.max(2, ...ends), 4);
  const plot = figure({height: 60 + 26 * names.length, x_range: new Bokeh.Range1d({start: low - 0.05, end: high + 0.05}),
    y_range: new Bokeh.FactorRange({factors: names}), tools: "save", toolbar_location: null, min_border_left: 90}, "Interval / value", null);
  for (const location of [0, 1]) plot.add_layout(new Bokeh.Span({location, dimension: "height", line_color: c.quiet, line_dash: location ? "dotted" : "solid"}));
  const marks = [["linear", -0.14, c.exact, "square", "linear theory"], ["bootstrap", 0.14, c.frontier, "circle", "bootstrap"]].map(([kind, offset, colour, marker, label]) => {
    const source = new Bokeh.ColumnDataSource({data: {low: shown.map(e => e[kind][0]), high: shown.map(e => e[kind][1]), one: shown.map(() => 1),
      y: names.map(name => [name, offset]), name: names, said: shown.map(e => `${number(e.value * e[kind][0], 4)} … ${number(e.value * e[kind][1], 4)}`)}});
    plot.segment({field: "low"}, {field: "y"}, {field: "high"}, {field: "y"}, {source, line_color: colour, line_width: 3, legend_label: label});
    return plot.scatter({field: "one"}, {field: "y"}, {source, marker, size: 7, fill_color: colour, line_color: c.ground, legend_label: label});
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: marks, tooltips: [["", "@name"], ["95 %", "@said"]]}));
  drawn(holder, plot);
}

LINKED.said = row => `${called(row)}: observed ${number(FIT.rows.observed[row])}, predicted ${number(FIT.rows.predicted[row])}, residual ${signed(FIT.rows.residual[row])}`;

LINKED.panel = row => {
  const r = FIT.rows, twins = everyRow(DATA.n).filter(other => other !== row && r.design[other] === r.design[row]);
  const facts = make("dl", {class: "facts"}, fact("observed", number(r.observed[row])), fact("predicted", number(r.predicted[row])),
    fact("left out", number(r.unseen[row])), fact("residual", signed(r.residual[row])), fact("in robust sds", DATA.sd > 0 ? signed(r.residual[row] / DATA.sd) : "–"));
  const design = make("dl", {class: "facts"}, ...FIT.factors.map(f => fact(f.name.replaceAll("_", " "), /parameters|tokens/.test(f.name) ? count(f.values[row]) : number(f.values[row]))));
  const same = twins.length ? [make("p", {class: "quiet"}, `Trained again: ${twins.slice(0, 8).map(called).join("; ")}${twins.length > 8 ? " …" : ""}`)] : [];
  return [make("p", {}, make("strong", {}, called(row))), facts, make("h3", {}, "Design"), design, ...same, make("h3", {}, `Share of each term (${DATA.ofLog ? "ln nats" : "nats"})`), termTable(row)];
};

function termTable(row) {
  const parts = FIT.terms.map(term => ({name: term.name, value: term.values[row]})).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const total = parts.reduce((sum, part) => sum + part.value, 0), most = Math.max(...parts.map(part => Math.abs(part.value)), 1e-300);
  const lines = parts.map(({name, value}) => {
    const bar = make("span", {class: "bar"});
    bar.style.width = `${100 * Math.abs(value) / most / 1.02}%`;
    return make("tr", {}, make("td", {class: "words"}, name), make("td", {class: "bars"}, bar), make("td", {}, number(value, 4)), make("td", {}, `${(100 * value / total).toFixed(1)} %`));
  });
  return make("div", {class: "wide"}, make("table", {}, make("tbody", {}, ...lines)));
}

function redraw() {
  redrawn(drawRows);
  drawIntervals();
}

document.getElementById("by").append(menuOf("predicted-by", "predicted by", BY.map(([, words]) => words), FIT.by, k => { FIT.by = k; redrawn(drawRows); }));
redraw();
linkRows("Show this row", Number, choose);
document.getElementById("predicted").addEventListener("keydown", walk);
choose(DATA.influential[0] ?? -1);
whenThemeChanges(redraw);
