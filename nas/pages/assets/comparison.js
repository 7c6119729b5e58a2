// A comparison's page: one study at a time, its curves over evaluations and the frontiers of its median runs.
const EVERY = [...new Set(DATA.studies.flatMap(study => study.strategies))].sort();
const SHOWN = {study: 0, axes: [0, 1]};

function drawCurves(id, measure, label, log) {
  const holder = document.getElementById(id), study = DATA.studies[SHOWN.study], counts = decoded(study.counts);
  const plot = figure({height: 400, x_axis_type: "log", y_axis_type: log ? "log" : "linear"}, "Distinct architectures evaluated", label);
  plainTicks(plot.xaxis, true, plot);
  plainTicks(plot.yaxis, log);
  forgetGlyphs(id);
  const marks = study.strategies.map((name, i) => {
    const {colour, marker, dash} = series(EVERY.indexOf(name)), quartiles = decodedAll(study[measure][i]);
    const source = new Bokeh.ColumnDataSource({data: {x: counts, ...quartiles, name: Array.from(counts, () => name)}});
    const band = plot.varea({field: "x"}, {field: "low"}, {field: "high"}, {source, fill_color: colour, fill_alpha: 0.08, muted_fill_alpha: 0.02});
    const line = plot.line({field: "x"}, {field: "middle"}, {source, line_color: colour, line_dash: dash, line_width: 1.7, muted_line_alpha: 0.15});
    const points = plot.scatter({field: "x"}, {field: "middle"}, {source, marker, size: 5, fill_color: colour, line_color: colour, muted_alpha: 0.1});
    keepGlyphs(id, name, [band, line, points]);
    return points;
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: marks, tooltips: [["strategy", "@name"], ["evaluated", "@x{0,0}"],
    ["median", "@middle{0.00000}"], ["quartiles", "@low{0.00000} to @high{0.00000}"]]}));
  for (const one of study.alike) warmUp(plot, one, counts, !log);
  drawn(holder, plot);
}

// A dotted line where strategies that begin with the same designs part.
function warmUp(plot, {said, count}, counts, named) {
  if (count < counts[0] || count >= counts[counts.length - 1]) return;
  const c = colours(), dimension = "height";
  plot.add_layout(new Bokeh.Span({location: count, dimension, line_color: c.quiet, line_dash: "dotted", line_width: 1}));
  if (named) plot.add_layout(new Bokeh.Label({x: count, y: 115, y_units: "screen", x_offset: -3, angle: 90, angle_units: "deg", text: said, text_color: c.quiet,
    text_font_size: "10px", text_baseline: "bottom"}));
}

function drawFronts() {
  const holder = document.getElementById("fronts"), study = DATA.studies[SHOWN.study], c = colours();
  if (study.objectives.length < 2) { holder.replaceChildren(); return; }
  const [x, y] = SHOWN.axes.map(k => study.objectives[k]);
  const plot = figure({height: 480, x_axis_type: x.log ? "log" : "linear", y_axis_type: y.log ? "log" : "linear"}, x.label, y.label);
  plainTicks(plot.xaxis, x.log, plot);
  plainTicks(plot.yaxis, y.log);
  const of = front => new Bokeh.ColumnDataSource({data: {x: decoded(front[SHOWN.axes[0]]), y: decoded(front[SHOWN.axes[1]])}});
  plot.scatter({field: "x"}, {field: "y"}, {source: of(study.reference), marker: "circle", size: 10, fill_color: null, line_color: c.exact,
    legend_label: study.referenceLabel});
  forgetGlyphs("fronts");
  study.strategies.forEach((name, i) => {
    const {colour, marker} = series(EVERY.indexOf(name));
    keepGlyphs("fronts", name, [plot.scatter({field: "x"}, {field: "y"}, {source: of(study.fronts[i]), marker, size: 6, fill_color: colour, line_color: colour,
      fill_alpha: 0.7, muted_alpha: 0.06})]);
  });
  drawn(holder, plot);
}

function drawStudy() {
  const study = DATA.studies[SHOWN.study];
  drawCurves("gap", "gap", study.gapLabel, true);
  drawCurves("share", "share", study.shareLabel, false);
  drawFronts();
  legendButtons(document.getElementById("legend"), study.strategies.map(name => ({name, i: EVERY.indexOf(name)})));
}

function costFirst(study) {
  const loss = study.objectives.findIndex(o => o.name === "loss" || o.name === "perplexity");
  const up = loss < 0 ? 0 : loss, across = study.objectives.findIndex((_, k) => k !== up);
  return [Math.max(across, 0), up];
}

function menus() {
  const holder = document.getElementById("study"), study = DATA.studies[SHOWN.study];
  const choice = (id, label, options, chosen, change) => {
    const made = make("select", {id, "aria-label": label}, ...options.map((name, k) => make("option", {value: k, selected: k === chosen}, name)));
    made.addEventListener("change", () => change(Number(made.value)));
    return make("label", {}, `${label} `, made);
  };
  const axis = place => choice(`axis-${place}`, place ? "up" : "across", study.objectives.map(o => o.label), SHOWN.axes[place],
    k => { SHOWN.axes[place] = k; drawFronts(); showSeries(document.getElementById("legend")); });
  holder.replaceChildren(choice("which", "study", DATA.studies.map(s => s.name), SHOWN.study, chooseStudy),
    ...(study.objectives.length > 2 ? [axis(0), axis(1)] : []));
}

function chooseStudy(k) {
  SHOWN.study = k;
  SHOWN.axes = costFirst(DATA.studies[k]);
  menus();
  drawStudy();
}

if (DATA.studies.length) {
  chooseStudy(0);
  whenThemeChanges(drawStudy);
}
