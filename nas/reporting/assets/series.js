// How one of many series is marked: a colour, a marker and a dash that together no other of the first sixty-four has.
const MARKERS = ["circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "plus", "cross"];
const DASHES = ["solid", "dashed", "dotted", "dashdot", [8, 3], [2, 6], [12, 4, 2, 4], [1, 3]];

function series(i) {
  const shifted = (i + Math.floor(i / 8)) % 8;
  const colour = getComputedStyle(document.documentElement).getPropertyValue(`--series${i % 8}`).trim();
  return {colour, marker: MARKERS[shifted], dash: DASHES[shifted]};
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
