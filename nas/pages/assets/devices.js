// A device study's page: the exact frontier of every case as steps, a loss holds until a dearer design lowers it; marks are the picks.
function drawFrontiers() {
  const holder = document.getElementById("frontiers"), c = colours();
  const plot = figure({height: 520, x_axis_type: "log"},
    DATA.xLabel, DATA.yLabel);
  plainTicks(plot.xaxis, true, plot);
  plainTicks(plot.yaxis, false);
  const read = [];
  DATA.cases.forEach((one, i) => {
    if (one.n === 0) return;
    const {colour, marker, dash} = series(i), x = decoded(one.x), y = decoded(one.y), named = n => Array(n).fill(one.name);
    const source = new Bokeh.ColumnDataSource({data: {x, y, name: named(one.n)}});
    const line = plot.step({field: "x"}, {field: "y"}, "after", {source, line_color: colour, line_dash: dash, line_width: 1.5, muted_line_alpha: 0.12});
    const points = plot.scatter({field: "x"}, {field: "y"}, {source, marker: "circle", size: 4, fill_color: colour, line_color: null, fill_alpha: 0.5,
      muted_alpha: 0.06});
    const glyphs = [line, points];
    if (one.pick.length) {
      const pick = new Bokeh.ColumnDataSource({data: {x: [one.pick[0]], y: [one.pick[1]], name: named(1)}});
      glyphs.push(plot.scatter({field: "x"}, {field: "y"}, {source: pick, marker, size: 11, fill_color: c.ground, line_color: colour, line_width: 2,
        muted_alpha: 0.15}));
    }
    read.push(...glyphs.slice(1));
    keepGlyphs("frontiers", one.name, glyphs);
  });
  plot.add_tools(new Bokeh.HoverTool({renderers: read, tooltips: [["case", "@name"], [DATA.xLabel, "@x{0,0.00}"], [DATA.yLabel, "@y{0.0000}"]]}));
  drawn(holder, plot);
  legendButtons(document.getElementById("legend"), DATA.cases.map((one, i) => ({name: one.name, i})).filter(({i}) => DATA.cases[i].n > 0));
}

if (DATA.cases?.some(one => one.n > 0)) {
  drawFrontiers();
  whenThemeChanges(drawFrontiers);
}
