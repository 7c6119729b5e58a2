"""What a reader of a page would see as a fault, found by measuring: in words, each fault a line, nothing where there is none."""

from typing import Any

PHONE = 700  # widths below are handhelds

#: Lines of text as they are seen: each with its rectangle, clipped by what scrolls or hides around it.
LINES = """
const clipping = e => { const s = getComputedStyle(e); return (s.overflowX !== 'visible' || s.overflowY !== 'visible') && !['inline', 'contents'].includes(s.display); };
const seen = e => e.checkVisibility({opacityProperty: true, visibilityProperty: true});
function* lines() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement, text = node.textContent.trim();
    if (!text || !seen(e) || e.closest('script, style, noscript, option, svg, .skip')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const around = [];
    for (let p = e; p && p !== document.body; p = p.parentElement) if (clipping(p)) around.push(p);
    for (const {left, top, right, bottom} of range.getClientRects()) {
      if (right - left < 1 || bottom - top < 1) continue;
      const box = {left, top, right, bottom, text, node, around};
      for (const p of around) {
        const r = p.getBoundingClientRect();
        Object.assign(box, {left: Math.max(box.left, r.left), top: Math.max(box.top, r.top), right: Math.min(box.right, r.right), bottom: Math.min(box.bottom, r.bottom)});
      }
      yield {...box, whole: {left, top, right, bottom}};
    }
  }
}
"""
#: Two texts one over the other, by more than the descenders of a line.
OVERPRINTED = (
    LINES
    + """
const shown = [...lines()].filter(b => b.right - b.left > 1 && b.bottom - b.top > 1).sort((a, b) => a.top - b.top), found = [];
shown.forEach((a, i) => {
  for (let j = i + 1; j < shown.length && shown[j].top < a.bottom - 3; j++) {
    const b = shown[j];
    if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2) found.push(`"${a.text.slice(0, 30)}" over "${b.text.slice(0, 30)}"`);
  }
});
return found;
"""
)
#: Text that ends right of the window or of what holds it. A matrix and a file's own lines scroll; figures typed into a box fit it.
CUT_OFF = (
    LINES
    + """
const scrolls = p => p.matches('pre') || p.querySelector(':scope > .heat'), found = [];
for (const {whole, around, text} of lines()) {
  if (around.some(scrolls)) continue;
  if (whole.right > document.documentElement.clientWidth + 1 || whole.left < -1) found.push(`"${text.slice(0, 40)}" leaves the window`);
  else if (around.some(p => whole.right > p.getBoundingClientRect().right + 1)) found.push(`"${text.slice(0, 40)}" is cut`);
}
for (const e of document.querySelectorAll('input, select')) if (seen(e) && e.scrollWidth > e.clientWidth + 1) found.push(`${e.tagName} cuts ${e.value}`);
return found;
"""
)
#: Controls that a finger misses.
SMALL = """
const within = root => [...root.querySelectorAll('*')].flatMap(e => [e, ...(e.shadowRoot ? within(e.shadowRoot) : [])]);
return within(document.body).filter(e => e.matches('button, select, summary, tr.linked, input:not([type=checkbox]), label.choice, [class*=bk-][class*=Button]') && e.checkVisibility() && !e.closest('.skip'))
  .map(e => [e, e.getBoundingClientRect().height]).filter(([, height]) => height > 0 && height < 39.5)
  .map(([e, height]) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 20)}: ${height} px high`);
"""
#: Every figure that is drawn, with its view.
FIGURES = """
const every = view => view.model.type === 'Figure' ? [view] : (view.child_views ?? []).flatMap(every);
const figures = [...Bokeh.index.roots].flatMap(every).filter(view => view.el.offsetWidth);
const pen = document.createElement('canvas').getContext('2d');
pen.font = '12px helvetica';
const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
"""
#: Legends that lie in a figure or on it.
LEGENDS = (
    FIGURES
    + """
const found = figures.filter(view => view.model.center.some(part => part.type === 'Legend')).map(() => 'a legend among the points');
for (const legend of document.querySelectorAll('.legend')) for (const view of figures)
  if (over(legend.getBoundingClientRect(), view.el.getBoundingClientRect())) found.push(`"${legend.textContent.slice(0, 30)}" lies on a figure`);
return found;
"""
)
#: Names in a figure that touch one another or leave its frame.
NAMES = (
    FIGURES
    + """
const found = [];
for (const view of figures) {
  const boxes = view.model.renderers.filter(r => r.glyph?.type === 'Text' && r.visible).flatMap(({glyph, data_source: {data}}) =>
    Array.from(data[glyph.text.field], (text, i) => {
      const x = view.frame.x_scale.compute(data[glyph.x.field][i]), y = view.frame.y_scale.compute(data[glyph.y.field][i]), half = pen.measureText(text).width / 2;
      return {text, left: x - half, right: x + half, top: y - 6, bottom: y + 6};
    }));
  const {x0, x1, y0, y1} = view.frame.bbox;
  boxes.forEach((a, i) => {
    if (a.left < x0 - 1 || a.right > x1 + 1 || a.top < y0 - 1 || a.bottom > y1 + 1) found.push(`"${a.text}" leaves its figure`);
    for (const b of boxes.slice(i + 1)) if (over(a, b)) found.push(`"${a.text}" over "${b.text}"`);
  });
}
return found;
"""
)
#: Values along an axis that touch, or an axis with fewer than two.
TICKS = (
    FIGURES
    + """
const found = [];
for (const view of figures) for (const axis of view.model.below.filter(part => part.visible && part.formatter)) {
  const {start, end} = view.model.x_range, ticks = axis.ticker.get_ticks(start, end, view.model.x_range, 0).major.filter(value => value >= start && value <= end);
  const names = axis.formatter.doFormat(ticks, {loc: 0}), places = ticks.map(value => view.frame.x_scale.compute(value));
  if (ticks.length < 2 && end > start) found.push(`${axis.axis_label}: ${ticks.length} values`);
  for (let i = 1; i < ticks.length; i++)
    if (places[i] - places[i - 1] < (pen.measureText(names[i]).width + pen.measureText(names[i - 1]).width) / 2 + 3) found.push(`${axis.axis_label}: ${names[i - 1]} touches ${names[i]}`);
}
return found;
"""
)
WIDE = "const e = document.documentElement; return e.scrollWidth > e.clientWidth ? [`the body scrolls: ${e.scrollWidth} of ${e.clientWidth}`] : []"
CHECKS = {
    "overprinted": OVERPRINTED,
    "cut off": CUT_OFF,
    "scrolling": WIDE,
    "small": SMALL,
    "legends": LEGENDS,
    "names": NAMES,
    "ticks": TICKS,
}


def shown_at(page: Any, width: int, scheme: str = "light") -> None:
    """Give the window a width and a colour scheme, on a handheld's width a finger in place of a pointer."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < PHONE}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": width < PHONE})


def settled(page: Any) -> None:
    """Wait until every figure is drawn and its names are in place."""
    page.until(
        "return [...document.querySelectorAll('.chart')].every(e => !e.childElementCount || e.querySelector('.chart') || e.dataset.ready === 'yes')"
    )
    page.driver.execute_async_script("setTimeout(arguments[0], 250)")


def faults(page: Any, check: str) -> list[str]:
    """What a check finds on the page as it is now."""
    found: list[str] = page.run(CHECKS[check])
    return found
