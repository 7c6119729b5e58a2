// Legends of buttons, each with the mark of its series.
const STROKES = {solid: [], dashed: [6], dotted: [2, 4], dashdot: [2, 4, 6, 4]};
const OUTLINES = {square: "-4,-4 4,-4 4,4 -4,4", triangle: "0,-5 5,4 -5,4", diamond: "0,-5 4,0 0,5 -4,0", inverted_triangle: "0,5 5,-4 -5,-4",
  hex: "-5,0 -2.5,-4.3 2.5,-4.3 5,0 2.5,4.3 -2.5,4.3",
  square_pin: "-4,-4 4,-4 4,4 -4,4", star: "0,-6 1.5,-2 5.7,-1.9 2.4,.8 3.5,4.9 0,2.5 -3.5,4.9 -2.4,.8 -5.7,-1.9 -1.5,-2"};
const LINES = {plus: "M-5,0H5M0,-5V5", cross: "M-5,0H5M0,-5V5", x: "M-4,-4L4,4M-4,4L4,-4", circle_cross: "M-4,0H4M0,-4V4", dash: "M0,-6V6"};

// One legend for all charts of a page, of buttons: a click or Space hides and shows a series, pointing or Tab lifts it out of the others.
const LEGEND = {hidden: new Set(), glyphs: new Map()};

function legendButtons(holder, names) {
  const change = (every, hide) => { for (const name of every) hide(name) ? LEGEND.hidden.add(name) : LEGEND.hidden.delete(name); showSeries(holder); };
  const buttons = names.map(({name, i}) => {
    const {css, marker, dash} = series(i), button = seriesButton(name, {colour: css, marker, dash});
    button.dataset.series = name;
    button.addEventListener("click", () => change([name], one => !LEGEND.hidden.has(one)));
    for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => lift(name));
    for (const event of ["mouseleave", "blur"]) button.addEventListener(event, () => lift(null));
    return button;
  });
  const every = names.map(one => one.name);
  const all = make("button", {type: "button", class: "series all"}, "all"), none = make("button", {type: "button", class: "series all"}, "none");
  all.addEventListener("click", () => change(every, () => false));
  none.addEventListener("click", () => change(every, () => true));
  holder.onkeydown = event => { if (event.key === "Escape") { change(every, () => false); lift(null); } };
  holder.replaceChildren(...buttons, ...(names.length > 2 ? [all, none] : []));
  showSeries(holder);
}

// A button that shows how a series is marked, and its name.
function seriesButton(name, mark) { return make("button", {type: "button", class: "series"}, swatch(mark), name); }

// `dash`: of its line, null without one; `hollow`: a marker without a fill.
function swatch({colour, marker, dash, hollow}) {
  const space = "http://www.w3.org/2000/svg";
  const part = (tag, attributes) => { const made = document.createElementNS(space, tag); for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value); return made; };
  const image = part("svg", {viewBox: "-16 -7 32 14", width: 32, height: 14, "aria-hidden": "true"});
  image.style.color = colour;
  if (dash) image.append(part("line", {x1: -16, x2: 16, y1: 0, y2: 0, stroke: "currentColor", "stroke-width": 1.7, "stroke-dasharray": (STROKES[dash] ?? dash).join(" ")}));
  const look = hollow ? {fill: "none", stroke: "currentColor", "stroke-width": 1.6} : {fill: "currentColor"};
  if (marker === "circle" || marker === "circle_cross") image.append(part("circle", {r: 4, ...look}));
  else if (marker in OUTLINES) image.append(part("polygon", {points: OUTLINES[marker], ...look}));
  if (marker in LINES) image.append(part("path", {d: LINES[marker], stroke: "currentColor", "stroke-width": marker === "plus" ? 3 : 1.5}));
  return image;
}

// The legend of one figure stands below it as buttons that hide and show what they name, so that it hides no point.
function legendBelow(holder, plot) {
  const found = plot.center.find(each => each instanceof Bokeh.Legend), items = found?.items ?? [];
  plot.center = plot.center.filter(each => each !== found);
  const buttons = items.map(({label, renderers}) => {
    const button = seriesButton(label.value, markOf(renderers));
    button.setAttribute("aria-pressed", String(renderers.every(renderer => renderer.visible)));
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const renderer of renderers) renderer.visible = shown;
    });
    return button;
  });
  const own = `legend-of-${holder.id}`;
  document.getElementById(own)?.remove();
  if (buttons.length) holder.after(make("div", {id: own, class: "legend", role: "group", "aria-label": "What is shown"}, ...buttons));
}

// How renderers of one name look together: the marker of the last that has one, the line of the first.
function markOf(renderers) {
  const glyphs = renderers.map(renderer => renderer.glyph), marked = glyphs.findLast(glyph => glyph instanceof Bokeh.Scatter), lined = glyphs.find(glyph => glyph !== marked);
  const of = marked ?? lined, marker = marked?.marker.value, filled = marker && !(marker in LINES) && of.fill_color.value;
  return {colour: filled || of.line_color.value, marker, dash: lined ? dashOf(lined.line_dash) : null, hollow: marker && !filled};
}

function dashOf(dash) { return dash?.value ?? dash ?? "solid"; }

function drawn(holder, plot) {
  legendBelow(holder, plot);
  holder.replaceChildren();
  holder.dataset.drawn = isDark() ? "dark" : "light";
  return Bokeh.Plotting.show(plot, holder).then(() => { holder.dataset.ready = "yes"; });
}

// What a chart draws of a series, in place of what it drew before.
function keepGlyphs(chart, name, glyphs) { LEGEND.glyphs.set(`${chart}\n${name}`, {name, glyphs}); }

function forgetGlyphs(chart) { for (const key of [...LEGEND.glyphs.keys()]) if (key.startsWith(`${chart}\n`)) LEGEND.glyphs.delete(key); }

function showSeries(holder) {
  for (const button of holder.querySelectorAll("[data-series]")) button.setAttribute("aria-pressed", String(!LEGEND.hidden.has(button.dataset.series)));
  for (const {name, glyphs} of LEGEND.glyphs.values()) for (const glyph of glyphs) glyph.visible = !LEGEND.hidden.has(name);
}

function lift(name) {
  for (const {name: own, glyphs} of LEGEND.glyphs.values()) for (const glyph of glyphs) {
    glyph.muted = name !== null && own !== name;
    glyph.level = name === own ? "overlay" : "glyph";
  }
}
