// A reproduction's page: claims by verdict and section, our numbers beside the printed ones, linked both ways.
const CLAIMS = [...document.querySelectorAll(".claim")];
const BOXES = [...document.querySelectorAll(".filters input")];
const STATE = {key: "", phase: 0, marks: []};
const VERDICT_MARKS = ["circle", "diamond", "x", "square_pin"], VERDICT_COLOURS = ["pick", "exact", "baseline", "quiet"];
const MARKED = {tools: `${TOOLS},tap`};

function ticked(kind) { return new Set(BOXES.filter(box => box.dataset.filter === kind && box.checked).map(box => box.value)); }

function filterClaims() {
  const verdicts = ticked("verdict"), sections = ticked("section");
  for (const claim of CLAIMS) claim.hidden = !(verdicts.has(claim.dataset.verdict) && sections.has(claim.dataset.section));
  for (const part of document.querySelectorAll(".part")) part.hidden = ![...part.querySelectorAll(".claim")].some(claim => !claim.hidden);
  const shown = CLAIMS.filter(claim => !claim.hidden).length;
  document.getElementById("shown").textContent = `${shown} of ${CLAIMS.length} claims shown`;
  remark();
}

function showAll() {
  for (const box of BOXES) box.checked = true;
  filterClaims();
}

function shortVerdict(verdict) { return verdict.startsWith("cannot") ? "cannot be checked" : verdict; }

// A claim is chosen by a click on its mark, or by unfolding it; its marks get a ring.
function choose(key) {
  STATE.key = key;
  for (const claim of CLAIMS) claim.classList.toggle("chosen", claim.dataset.key === key);
  remark();
}

function goTo(key) {
  const claim = CLAIMS.find(one => one.dataset.key === key);
  if (!claim) return;
  if (claim.hidden) showAll();
  claim.querySelector("details").open = true;
  choose(key);
  claim.scrollIntoView({block: "start"});
  claim.focus({preventScroll: true});
}

function hiddenKeys() { return new Set(CLAIMS.filter(claim => claim.hidden).map(claim => claim.dataset.key)); }

function remark() {
  const hidden = hiddenKeys();
  for (const {source, keys} of STATE.marks) source.data = {...source.data,
    alpha: keys.map(key => hidden.has(key) ? 0.15 : 0.9), ring: keys.map(key => key === STATE.key ? 4 : 1.2)};
}

// Numbers one below another, a mark each; a verdict has a colour and a shape.
function drawNumbers(id, rows, xOf, label, log, printedOf) {
  const holder = document.getElementById(id), c = colours();
  if (!rows.length) { holder.parentElement.remove(); return; }
  const narrow = holder.clientWidth < 500; // names stand above their marks then
  const plot = figure({...MARKED, height: 110 + (narrow ? 36 : 19) * rows.length, x_axis_type: log ? "log" : "linear", min_border_left: 20,
    x_range: new Bokeh.DataRange1d({range_padding: 0.12}), y_range: new Bokeh.Range1d({start: rows.length - 0.3, end: narrow ? -1 : -0.7})}, label, null);
  plainTicks(plot.xaxis, log, plot);
  plot.yaxis.ticker = new Bokeh.FixedTicker({ticks: rows.map((_, i) => i)});
  if (narrow) {
    plot.yaxis.major_label_text_font_size = "0px";
    rows.forEach((row, i) => plot.add_layout(new Bokeh.Label({x: 2, x_units: "screen", y: i - 0.45, text: row.name, text_font_size: "11px", text_color: c.ink, text_baseline: "middle"})));
  } else plot.yaxis.major_label_overrides = new Map(rows.map((row, i) => [i, row.name]));
  plot.yaxis.major_label_text_color = c.ink;
  const lines = new Bokeh.ColumnDataSource({data: {y: rows.map((_, i) => i), x0: rows.map(printedOf), x1: rows.map(xOf)}});
  plot.segment({field: "x0"}, {field: "y"}, {field: "x1"}, {field: "y"}, {source: lines, line_color: c.evaluated, line_width: 2});
  plot.scatter({field: "x0"}, {field: "y"}, {source: lines, marker: "dash", angle: Math.PI / 2, size: 14, line_color: c.ink, line_width: 2, legend_label: "printed"});
  const read = DATA.verdicts.flatMap((verdict, k) => {
    const at = rows.map((row, i) => ({...row, i})).filter(row => row.verdict === verdict);
    if (!at.length) return [];
    const colour = c[VERDICT_COLOURS[k]], source = new Bokeh.ColumnDataSource({data: {x: at.map(xOf), y: at.map(row => row.i), name: at.map(row => row.name),
      claim: at.map(row => row.claim), printed: at.map(row => number(row.printed)), ours: at.map(row => number(row.ours)), alpha: at.map(() => 0.9), ring: at.map(() => 1.2)}});
    STATE.marks.push({source, keys: at.map(row => row.key)});
    source.selected.properties.indices.change.connect(() => {
      const [first] = source.selected.indices;
      if (first !== undefined) goTo(at[first].key);
    });
    return [plot.scatter({field: "x"}, {field: "y"}, {source, marker: VERDICT_MARKS[k], size: 11, fill_color: colour, line_color: colour,
      fill_alpha: {field: "alpha"}, line_alpha: {field: "alpha"}, line_width: {field: "ring"}, nonselection_fill_alpha: {field: "alpha"}, nonselection_line_alpha: {field: "alpha"},
      legend_label: shortVerdict(verdict)})];
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: read, tooltips: [["claim", "@claim"], ["", "@name"], ["printed", "@printed"], ["ours", "@ours"]]}));
  drawn(holder, plot);
}

function drawLengths() {
  const c = colours(), n = DATA.lengths.length, middle = DATA.lengths.slice(1).map((length, i) => Math.sqrt(length * DATA.lengths[i]));
  if (n < 2) return;
  const plot = figure({...MARKED, height: 340, x_axis_type: "log", y_range: new Bokeh.Range1d({start: -0.9, end: 2.3})}, "Input tokens (a mark lies between two lengths)", "Exponent of latency");
  plot.xaxis.formatter = new Bokeh.NumeralTickFormatter({format: "0,0"});
  plot.xaxis.ticker = new Bokeh.FixedTicker({ticks: DATA.lengths});
  const read = DATA.exponents.map((one, i) => {
    const {colour, marker, dash} = series(i);
    const source = new Bokeh.ColumnDataSource({data: {x: middle, y: one.exponents, name: middle.map(() => one.name)}});
    plot.line({field: "x"}, {field: "y"}, {source, line_color: colour, line_dash: dash, line_width: 2, legend_label: one.name});
    plot.line({field: "x"}, {field: "y"}, {source: new Bokeh.ColumnDataSource({data: {x: middle, y: middle.map(() => one.printed)}}),
      line_color: c.ink, line_dash: [2, 4], line_width: 1.2, legend_label: "printed"});
    return plot.scatter({field: "x"}, {field: "y"}, {source, marker, size: 8, fill_color: colour, line_color: colour, legend_label: one.name});
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: read, tooltips: [["", "@name"], ["tokens", "@x{0,0}"], ["exponent", "@y{0.00}"]]}));
  drawn(document.getElementById("lengths"), plot);
}

function drawGains() {
  const c = colours(), {printed, memory, found} = DATA.gains;
  const plot = figure({...MARKED, height: 320, x_axis_type: "log", x_range: new Bokeh.DataRange1d({range_padding: 0.35}),
    y_range: new Bokeh.Range1d({start: 0, end: 1.25 * Math.max(printed, ...found.map(g => g.percent))})}, "Weights (GB)", "Perplexity below Qwen2.5-0.5B's (%)");
  plainTicks(plot.xaxis, true, plot);
  const source = new Bokeh.ColumnDataSource({data: {x: found.map(g => g.memory_gb), y: found.map(g => g.percent), name: found.map(g => g.name), design: found.map(g => g.design)}});
  for (const [dimension, location] of [["width", printed], ["height", memory]])
    plot.add_layout(new Bokeh.Span({location, dimension, line_color: c.ink, line_dash: [2, 4], line_width: 1.3}));
  const marks = plot.scatter({field: "x"}, {field: "y"}, {source, marker: "diamond", size: 13, fill_color: c.frontier, line_color: c.ground});
  const least = Math.max(memory, ...found.map(g => g.memory_gb));
  nameMarks(plot, [c.ink, c.quiet], () => [...found.map(g => ({x: g.memory_gb, y: g.percent, name: g.name, colour: c.ink})), {x: least, y: printed, name: `printed ${printed} %`, colour: c.quiet},
    {x: memory, y: 1, name: "Qwen2.5-0.5B's weights", colour: c.quiet}], true, false);
  plot.add_tools(new Bokeh.HoverTool({renderers: [marks], tooltips: [["", "@name"], ["lower by", "@y{0.0} %"], ["weights", "@x{0.000} GB"], ["design", "@design"]]}));
  drawn(document.getElementById("gains"), plot);
}

function drawFrontier() {
  const phases = [...new Set(DATA.frontiers.map(f => f.phase))], shown = DATA.frontiers.filter(f => f.phase === phases[STATE.phase]), c = colours();
  if (!shown.length) return;
  const plot = figure({...MARKED, height: 380, x_axis_type: "log"}, null, "Predicted loss (nats per token)");
  plot.xaxis.visible = false;
  const sources = shown.map(f => new Bokeh.ColumnDataSource({data: {x: f.ms, y: f.loss, name: f.ms.map(() => f.precision), ...f.moving}}));
  const names = Object.keys(DATA.names), read = sources.map((source, i) => {
    const {colour, marker, dash} = series(i), legend_label = shown[i].precision;
    plot.step({field: "x"}, {field: "y"}, "after", {source, line_color: colour, line_dash: dash, line_width: 1.5, legend_label});
    return plot.scatter({field: "x"}, {field: "y"}, {source, marker, size: 5, fill_color: colour, line_color: null, fill_alpha: 0.7, legend_label});
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: read, tooltips: [["precision", "@name"], ["ms", "@x{0,0.00}"], ["loss", "@y{0.0000}"], ...names.map(name => [DATA.names[name], `@{${name}}{0.[00]}`])]}));
  const strips = names.map((name, k) => strip(plot, name, sources, k === names.length - 1 ? shown[0].axis : null));
  drawn(document.getElementById("frontier"), plot, strips);
}

function strip(plot, name, sources, axis) {
  const made = figure({height: axis ? 130 : 92, x_range: plot.x_range, x_axis_type: "log", toolbar_location: null, tools: "", y_range: new Bokeh.DataRange1d({range_padding: 0.25})}, axis, DATA.names[name]);
  plainTicks(made.xaxis, true, made);
  made.xaxis.visible = axis !== null;
  made.yaxis.axis_label_text_font_size = "11px";
  made.yaxis.ticker = new Bokeh.BasicTicker({desired_num_ticks: 3});
  sources.forEach((source, i) => {
    const {colour, marker} = series(i);
    made.scatter({field: "x"}, {field: name}, {source, marker, size: 4, fill_color: colour, line_color: null, fill_alpha: 0.5});
  });
  return made;
}

function phaseMenu() {
  const phases = [...new Map(DATA.frontiers.map(f => [f.phase, f.axis])).values()];
  const choice = make("select", {id: "phase", "aria-label": "phase"}, ...phases.map((name, k) => make("option", {value: k, selected: k === STATE.phase}, name)));
  choice.addEventListener("change", () => { STATE.phase = Number(choice.value); drawFrontier(); });
  document.getElementById("phases").append(make("label", {}, "phase ", choice));
}

function redraw() {
  STATE.marks = [];
  drawNumbers("numbers", DATA.numbers.filter(n => !n.exponent && n.ours / n.printed > 0), n => n.ours / n.printed, "Ours / printed", true, () => 1);
  drawNumbers("exponents", DATA.numbers.filter(n => n.exponent), n => n.ours, "Exponent", false, n => n.printed);
  drawLengths();
  drawGains();
  drawFrontier();
  remark();
}

for (const box of BOXES) box.addEventListener("change", filterClaims);
document.getElementById("all").addEventListener("click", showAll);
for (const claim of CLAIMS) claim.querySelector("details").addEventListener("toggle", event => { if (event.target.open) choose(claim.dataset.key); });
document.addEventListener("keydown", event => { if (event.key === "Escape") choose(""); });
phaseMenu();
redraw();
filterClaims();
whenThemeChanges(redraw);
