Bokeh.set_log_level("warn");

// Colours come from the style sheet, so that the page and what is drawn in it change together.
const ROLES = ["ground", "raised", "ink", "quiet", "line", "evaluated", "outside", "frontier", "exact", "baseline", "pick"];

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(ROLES.map(role => [role, style.getPropertyValue(`--${role}`).trim()]));
}

function isDark() {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function figure(options, xLabel, yLabel) {
  const c = colours();
  const made = Bokeh.Plotting.figure({
    sizing_mode: "stretch_width", toolbar_location: "above", min_border_left: 72, min_border_right: 12,
    background_fill_color: c.ground, border_fill_color: c.ground, outline_line_color: null, ...options,
  });
  made.toolbar.logo = null;
  made.toolbar.autohide = false;
  for (const [axis, label] of [[made.xaxis, xLabel], [made.yaxis, yLabel]]) {
    Object.assign(axis, {
      axis_label: label, axis_label_text_color: c.ink, major_label_text_color: c.quiet, axis_line_color: c.line,
      axis_label_text_font_style: "normal", axis_label_text_font_size: "13px", major_label_text_font_size: "12px",
      major_tick_line_color: c.line, minor_tick_line_color: null,
    });
  }
  for (const grid of [made.xgrid, made.ygrid]) Object.assign(grid, {grid_line_color: c.line, grid_line_alpha: 0.5});
  return made;
}

function plainTicks(axis, log) {
  axis.formatter = new Bokeh.NumeralTickFormatter({format: "0,0.[000000]"});
  if (log) axis.ticker = new Bokeh.LogTicker({desired_num_ticks: 5, mantissas: [1, 2, 5]});
}

function whenThemeChanges(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

// Paper gets a copy of each chart that is as wide as the page: the chart itself keeps the width of the window.
function copiesForPrint() {
  dropCopies();
  for (const view of Bokeh.index.roots) {
    const holder = view.el.closest(".chart"), copy = holder && view.el.offsetWidth ? view.export("png").canvas : null;
    if (!copy?.width) continue;
    copy.className = "printed";
    copy.removeAttribute("style");
    holder.append(copy);
  }
}

function dropCopies() { for (const copy of document.querySelectorAll("canvas.printed")) copy.remove(); }

addEventListener("beforeprint", copiesForPrint);
addEventListener("afterprint", dropCopies);

// Menus of metrics for both axes; what is chosen is written into `axes`.
function axisMenus(axes, redraw) {
  const holder = document.getElementById("axes");
  if (!holder) return;
  const menu = (name, place) => {
    const choice = make("select", {"aria-label": name, id: `axis-${place}`}, ...DATA.metrics.map(m =>
      make("option", {value: m.name, selected: m.name === axes[place]}, m.label)));
    choice.addEventListener("change", () => { axes[place] = choice.value; redraw(); });
    return make("label", {}, `${name} `, choice);
  };
  holder.append(menu("across", 0), menu("up", 1));
}
