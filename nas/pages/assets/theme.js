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

// Fingers instead of a pointer, or no width for both: targets are larger, and a swipe over a chart scrolls the page until a tool is chosen.
const HANDHELD = matchMedia("(pointer: coarse), (max-width: 600px)");
const TOOLS = "pan,box_zoom,wheel_zoom,reset,save";

function figure(options, xLabel, yLabel) {
  const c = colours(), {tools = TOOLS} = options, zooms = tools.includes("box_zoom") && !HANDHELD.matches;
  const made = Bokeh.Plotting.figure({
    sizing_mode: "stretch_width", toolbar_location: HANDHELD.matches ? "above" : "right", min_border_left: HANDHELD.matches ? 56 : 72, min_border_right: 12,
    background_fill_color: c.ground, border_fill_color: c.ground, outline_line_color: null,
    tools, active_scroll: null, active_drag: zooms ? "box_zoom" : null, ...options,
  });
  if (HANDHELD.matches) made.toolbar.stylesheets = ["[class*=Button] { --button-width: 40px; --button-height: 40px; }"];
  made.toolbar.logo = null;
  made.toolbar.autohide = !HANDHELD.matches;
  for (const [axis, label] of [[made.xaxis, xLabel], [made.yaxis, yLabel]]) {
    Object.assign(axis, {
      axis_label: label, axis_label_text_color: c.ink, major_label_text_color: c.quiet, axis_line_color: c.line,
      axis_label_text_font_style: "normal", axis_label_text_font_size: "14px", major_label_text_font_size: "12px",
      major_tick_line_color: c.line, minor_tick_line_color: null,
    });
  }
  for (const [grid, axis] of [[made.xgrid, made.below[0]], [made.ygrid, made.left[0]]]) Object.assign(grid, {axis, ticker: null, grid_line_color: c.line, grid_line_alpha: 0.5});
  return made;
}

// `across`: the figure whose width the axis has; an upright one has room for any.
function plainTicks(axis, log, across = null) {
  axis.formatter = new Bokeh.NumeralTickFormatter({format: "0,0.[000000]"});
  if (!log) return;
  const ticker = new Bokeh.LogTicker();
  ticker.get_ticks_no_defaults = (low, high) => ({major: logTicks(low, high, Math.max(3, Math.floor(widthOf(across) / 50))), minor: []});
  axis.ticker = ticker;
}

function widthOf(plot) { return plot && !plot.properties.inner_width.is_unset ? plot.inner_width : 400; }

// At most so many values over a whole logarithmic axis: 1, 2, 5 or 1, 3 and their multiples of ten; even steps where that is hardly any.
function logTicks(low, high, most) {
  if (!(low > 0) || !(high > low) || !Number.isFinite(high)) return [];
  const of = digits => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) found.push(...digits.map(digit => Number(`${digit}e${power}`)));
    return found.filter(value => value >= low && value <= high);
  };
  const fine = of([1, 2, 5]);
  if (fine.length < 3) return evenTicks(low, high, Math.min(most, 5));
  const kept = [fine, of([1, 3]), of([1])].find(ticks => ticks.length <= most) ?? of([1]);
  return kept.filter((_, i) => i % Math.ceil(kept.length / most) === 0);
}

// Where a value of an axis lies, in pixels of a length; and which value lies there.
function pixel(value, range, log, length) {
  return length * (log ? Math.log(value / range.start) / Math.log(range.end / range.start) : (value - range.start) / (range.end - range.start));
}

function valueAt(place, range, log, length) {
  const share = place / length;
  return log ? range.start * (range.end / range.start) ** share : range.start + share * (range.end - range.start);
}

// Where a click lands: of rows the nearest on the screen, -1 beyond 30 pixels.
function nearest(event, plot, xLog, yLog, rows, x, y) {
  const at = (u, v) => [pixel(u, plot.x_range, xLog, plot.inner_width), pixel(v, plot.y_range, yLog, plot.inner_height)];
  const [px, py] = at(event.x, event.y), far = rows.map(row => { const [qx, qy] = at(x[row], y[row]); return Math.hypot(qx - px, qy - py); });
  const least = far.reduce((best, each, i) => each < (far[best] ?? 30) ? i : best, -1);
  return least < 0 ? -1 : rows[least];
}

// Keys choose along an order of rows; Esc chooses none.
function walkAlong(event, order, row, choose) {
  const steps = {ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity};
  if (event.altKey || event.ctrlKey || event.metaKey || !order.length) return;
  if (event.key === "Escape") choose(-1);
  else if (event.key in steps) {
    const at = order.indexOf(row), last = order.length - 1, step = steps[event.key];
    choose(order[at < 0 && Number.isFinite(step) ? (step > 0 ? 0 : last) : Math.min(last, Math.max(0, at + step))]);
  } else return;
  event.preventDefault();
}

// Rows of tables that show what they are about.
function linkRows(title, rowOf, choose) {
  for (const line of document.querySelectorAll("tr[data-index]")) {
    const row = rowOf(Number(line.dataset.index));
    if (row < 0) continue;
    line.classList.add("linked");
    Object.assign(line, {tabIndex: 0, title});
    line.addEventListener("click", () => choose(row));
    line.addEventListener("keydown", event => { if (event.key === "Enter") choose(row); });
  }
}

function evenTicks(low, high, most) {
  const least = (high - low) / most, power = Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map(digit => Number(`${digit}e${power}`)).find(each => each >= least);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

// A table wider than its place is set tight, without bars; still too wide it is folded: a row is a block, each value below its column's name
// (page.css). A matrix scrolls instead.
function foldTables() {
  const tables = [...document.querySelectorAll(".wide > table:not(.heat)")];
  const tooWide = tables => tables.filter(table => table.parentElement.scrollWidth > table.parentElement.clientWidth + 1);
  for (const name of document.querySelectorAll(".folded .name")) name.remove();
  for (const table of tables) table.classList.remove("tight", "folded");
  const wide = tooWide(tables);
  for (const table of wide) table.classList.add("tight");
  for (const table of tooWide(wide)) {
    nameCells(table);
    table.classList.add("folded");
  }
}

// Before each value the name of its column, as words and their meanings stand in the head; Tab stops at the first row's.
function nameCells(table) {
  const names = [...table.querySelectorAll("thead th")];
  [...table.tBodies[0].rows].forEach((line, k) => [...line.cells].forEach((cell, i) => {
    if (i === 0 || !cell.textContent) return;
    const name = make("span", {class: "name"}, ...names[i].cloneNode(true).childNodes);
    if (k > 0) for (const abbr of name.querySelectorAll("abbr")) abbr.removeAttribute("tabindex");
    cell.prepend(name);
  }));
}

new ResizeObserver(foldTables).observe(document.body); // at first, with the window, and when something is unfolded

function whenThemeChanges(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

// Paper gets a copy of each plot that is as wide as the page, each on a page of its own choice: the chart itself keeps the width of the window.
function copiesForPrint() {
  dropCopies();
  for (const view of Bokeh.index.roots) {
    const holder = view.el.closest(".chart");
    if (!holder || !view.el.offsetWidth) continue;
    for (const part of view.child_views?.length ? view.child_views : [view]) {
      const copy = part.export("png").canvas;
      if (!copy?.width) continue;
      copy.className = "printed";
      copy.removeAttribute("style");
      holder.append(copy);
    }
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
