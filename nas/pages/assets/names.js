// Names beside the marks of a figure: none on another name, on a named mark or outside; where none has room, pointing still reads it.
const NAME_FONT = {size: 13, family: "helvetica"}, NAME_HEIGHT = 16;
const SIDES = [[-1, 1], [0, 1], [-1, 0], [1, 1], [1, -1], [0, -1], [1, 0], [-1, -1]]; // left below first: a falling frontier leaves room there

// `inks`: the colours of names, of which that of the pick is bold; `named`: gives {x, y, name, colour} by importance; `avoided`: {x, y} of further marks that
// names had better not cover. Placed anew whenever the figure's size or ranges change, and by the function that is returned.
function nameMarks(plot, inks, named, xLog, yLog, avoided = []) {
  const c = colours(), sources = new Map(inks.map(colour => [colour, new Bokeh.ColumnDataSource({data: columnsOf([])})]));
  for (const range of [plot.x_range, plot.y_range]) if (range instanceof Bokeh.DataRange1d) range.renderers = plot.renderers.slice(); // of marks, not of names
  for (const [colour, source] of sources) {
    plot.segment({field: "x"}, {field: "y"}, {field: "led_x"}, {field: "led_y"}, {source, line_color: colour, line_alpha: 0.5, line_width: 1});
    plot.text({field: "to_x"}, {field: "to_y"}, {field: "name"}, {source, text_color: colour, text_font: NAME_FONT.family, text_font_size: `${NAME_FONT.size}px`, text_font_style: colour === c.pick ? "bold" : "normal",
      text_baseline: "middle", text_align: "center", background_fill_color: c.ground, background_fill_alpha: 0.8});
  }
  let later = 0;
  const place = () => {
    if (plot.properties.inner_width.is_unset || plot.properties.inner_height.is_unset || !(plot.x_range.end > plot.x_range.start)) return;
    const across = [plot.x_range, xLog, plot.inner_width], up = [plot.y_range, yLog, plot.inner_height];
    const seen = each => ({...each, at: [pixel(each.x, ...across), plot.inner_height - pixel(each.y, ...up)]});
    const placed = freePlaces(named().map(seen), avoided.map(seen), plot.inner_width, plot.inner_height).map(each => ({...each, to_x: valueAt(each.to[0], ...across), to_y: valueAt(plot.inner_height - each.to[1], ...up)}));
    for (const [colour, source] of sources) source.data = columnsOf(placed.filter(each => each.colour === colour));
  };
  for (const changed of [plot.x_range.change, plot.y_range.change, plot.properties.inner_width.change, plot.properties.inner_height.change])
    changed.connect(() => { clearTimeout(later); later = setTimeout(place, 40); }); // one figure is laid out in several steps
  return place;
}

function columnsOf(placed) {
  const column = read => placed.map(read);
  return {x: column(p => p.x), y: column(p => p.y), to_x: column(p => p.to_x), to_y: column(p => p.to_y), name: column(p => p.name),
    led_x: column(p => p.far ? p.to_x : p.x), led_y: column(p => p.far ? p.to_y : p.y)};
}

// Those that have room in a frame, each with the middle of its name where it covers least; a name far from its mark is led to it by a line.
function freePlaces(named, avoided, width, height) {
  const visible = named.filter(({at: [x, y]}) => x >= 0 && x <= width && y >= 0 && y <= height);
  const taken = visible.map(({at: [x, y]}) => [x - 7, y - 7, x + 7, y + 7]), found = [];
  for (const each of visible) {
    const name = shortened(each.name, width * 0.8), half = textWidth(name) / 2 + 2;
    let best = null;
    for (const gap of [9, 22, 36, 52, 70]) for (const [right, down] of SIDES) {
      const to = [each.at[0] + right * (half + gap), each.at[1] + down * (NAME_HEIGHT / 2 + gap)], box = boxAround(...to, half);
      if (box[0] < 0 || box[1] < 0 || box[2] > width || box[3] > height || taken.some(other => overlap(other, box))) continue;
      const cost = gap + 5 * avoided.filter(({at: [x, y]}) => overlap([x - 3, y - 3, x + 3, y + 3], box)).length;
      if (!best || cost < best.cost) best = {cost, to, box, far: gap > 9};
    }
    if (!best) continue;
    taken.push(best.box);
    found.push({...each, ...best, name});
  }
  return found;
}

function boxAround(x, y, half) { return [x - half, y - NAME_HEIGHT / 2, x + half, y + NAME_HEIGHT / 2]; }

function overlap(a, b) { return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]; }

function shortened(name, room) {
  let kept = name.length;
  while (kept > 8 && textWidth(name.slice(0, kept) + (kept < name.length ? "…" : "")) > room) kept--;
  return kept < name.length ? `${name.slice(0, kept)}…` : name;
}

const RULER = document.createElement("canvas").getContext("2d");

function textWidth(text) {
  RULER.font = `bold ${NAME_FONT.size}px ${NAME_FONT.family}`;
  return RULER.measureText(text).width;
}
