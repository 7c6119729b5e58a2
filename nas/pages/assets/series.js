// How one of many series is marked: a colour, a marker and a dash that together no other of the first sixty-four has.
const MARKERS = ["circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "plus", "cross"];
const DASHES = ["solid", "dashed", "dotted", "dashdot", [8, 3], [2, 6], [12, 4, 2, 4], [1, 3]];
const STROKES = {solid: [], dashed: [6], dotted: [2, 4], dashdot: [2, 4, 6, 4]};
const OUTLINES = {square: "-4,-4 4,-4 4,4 -4,4", triangle: "0,-5 5,4 -5,4", diamond: "0,-5 4,0 0,5 -4,0", inverted_triangle: "0,5 5,-4 -5,-4",
  hex: "-5,0 -2.5,-4.3 2.5,-4.3 5,0 2.5,4.3 -2.5,4.3"};

function series(i) {
  const shifted = (i + Math.floor(i / 8)) % 8;
  const colour = `var(--series${i % 8})`;
  return {colour: getComputedStyle(document.documentElement).getPropertyValue(`--series${i % 8}`).trim(), css: colour, marker: MARKERS[shifted], dash: DASHES[shifted]};
}

function legendBeside(plot, c) {
  const made = plot.legend;
  Object.assign(made, {background_fill_color: c.ground, background_fill_alpha: 0.85, border_line_color: null, label_text_color: c.ink,
    label_text_font_size: "11px", click_policy: "hide", spacing: 0, padding: 4, glyph_height: 14, label_height: 14});
}

function drawn(holder, plot) {
  holder.replaceChildren();
  holder.dataset.drawn = isDark() ? "dark" : "light";
  Bokeh.Plotting.show(plot, holder).then(() => { holder.dataset.ready = "yes"; });
}

// One legend for all charts of a page, of buttons: a click or Space hides and shows a series, pointing or Tab lifts it out of the others.
const LEGEND = {hidden: new Set(), glyphs: new Map()};

function legendButtons(holder, names) {
  const change = (every, hide) => { for (const name of every) hide(name) ? LEGEND.hidden.add(name) : LEGEND.hidden.delete(name); showSeries(holder); };
  const buttons = names.map(({name, i}) => {
    const button = make("button", {type: "button", class: "series", "data-series": name}, swatch(i), name);
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

function swatch(i) {
  const {css, marker, dash} = series(i), space = "http://www.w3.org/2000/svg";
  const part = (tag, attributes) => { const made = document.createElementNS(space, tag); for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value); return made; };
  const image = part("svg", {viewBox: "-16 -7 32 14", width: 32, height: 14, "aria-hidden": "true"});
  image.style.color = css;
  image.append(part("line", {x1: -16, x2: 16, y1: 0, y2: 0, stroke: "currentColor", "stroke-width": 1.7, "stroke-dasharray": (STROKES[dash] ?? dash).join(" ")}));
  if (marker === "circle") image.append(part("circle", {r: 4, fill: "currentColor"}));
  else if (marker in OUTLINES) image.append(part("polygon", {points: OUTLINES[marker], fill: "currentColor"}));
  else image.append(part("path", {d: "M-5,0H5M0,-5V5", stroke: "currentColor", "stroke-width": marker === "plus" ? 3 : 1.5}));
  return image;
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
