// One architecture: its shape and metrics and, of detailed members, where time, bytes and loss come from and what a step buys.
const DETAILED = new Map(Array.from(decoded(DATA.detailed), (row, i) => [row, i]));
const DETAILS = readDetails();
const STATE = {row: -1};

function readDetails() {
  const d = DATA.details, named = part => ({names: part.names, columns: part.columns.map(decoded)});
  const counts = Array.from(decoded(d.steps.counts)), starts = [0];
  for (const n of counts) starts.push(starts[starts.length - 1] + n);
  return {
    lossTerms: named(d.lossTerms), resident: named(d.resident), extrapolates: decoded(d.extrapolates), ranges: d.ranges,
    low: d.interval && decoded(d.interval.low), high: d.interval && decoded(d.interval.high),
    phases: d.phases.map(phase => ({name: phase.name, operators: phase.operators.map(operator => ({
      name: operator.name, part: operator.part, instances: decoded(operator.instances), gflop: decoded(operator.gflop), mb: decoded(operator.mb),
      ms: operator.ms.map(decoded)}))})),
    steps: {starts, name: decoded(d.steps.name), changes: d.steps.changes.map(decoded)},
  };
}

function select(row) {
  STATE.row = row;
  const panel = document.getElementById("panel");
  showCursor(row);
  panel.dataset.index = row < 0 ? "" : String(ROWS.index[row]);
  const body = row < 0 ? [make("p", {class: "quiet"}, "Click a point of the frontier, or focus it and press an arrow key.")] : described(row);
  panel.replaceChildren(...body);
  explainWords(panel);
  foldTables();
  document.getElementById("said").textContent = row < 0 ? "Nothing selected" :
    `Selected: ${designText(ROWS.shape, row)}; ${CHART.axes.map(name => takenText(name, row).join("")).join(", ")}. Its parts stand below.`;
}

function described(row) {
  const i = DETAILED.get(row), heading = make("p", {}, make("strong", {}, designText(ROWS.shape, row)));
  const facts = make("dl", {class: "facts"}, ...DATA.metrics.map(m => fact(m.name, valueText(m.name, ROWS.metrics[m.name][row]))));
  const shape = make("dl", {class: "facts"}, ...Object.keys(ROWS.shape).map(name => fact(name, shapeText(name, row))));
  const parts = [heading, sureness(row, i), make("h3", {}, "Metrics"), facts];
  if (i !== undefined) parts.push(...DETAILS.phases.flatMap(phase => phaseTable(phase, i)), ...byteTable(i), ...stepTable(i), ...lossTable(i));
  parts.push(make("h3", {}, "Architecture"), shape, ...commands(row));
  return parts;
}

function shapeText(name, row) {
  const value = ROWS.shape[name][row], words = DATA.words[name];
  return words ? words[value] : number(value);
}

function sureness(row, i) {
  const said = [];
  if (i !== undefined && DETAILS.low) said.push(`Loss between ${number(DETAILS.low[i])} and ${number(DETAILS.high[i])} in nine of ten ${DATA.details.interval.of}.`);
  const at = DATA.optimal ? FRONTIER.indexOf(row) : -1;
  if (at >= 0 && !Number.isNaN(OPTIMAL[at])) said.push(`Pareto-optimal in ${number(100 * OPTIMAL[at], 3)} % of the draws.`);
  if (i !== undefined) for (const each of DATA.differences ?? []) said.push(`From ${each.label}: ${each.words[i]}.`);
  const group = DATA.groups && FRONTIER.indexOf(row) >= 0 ? GROUPS[FRONTIER.indexOf(row)] : -1;
  if (group >= 0) said.push(`Step ${group + 1} of ${DATA.steps} that the law tells apart, with ${GROUPS.filter(each => each === group).length} designs: the cheapest of them will do.`);
  if (i !== undefined && DETAILS.extrapolates[i]) said.push("The law extrapolates here.");
  return make("p", {class: "quiet"}, said.join(" "));
}
const OPTIMAL = DATA.optimal && decoded(DATA.optimal);
const GROUPS = DATA.groups && Array.from(decoded(DATA.groups));

function table(caption, header, rows, words = 1) {
  const cell = (tag, content, j) => make(tag, {class: j < words && "words", scope: tag === "th" && "col"}, ...(j < words ? breakable(content) : [content]));
  const body = rows.map(row => make("tr", {}, ...row.map((content, j) => content instanceof Element && content.tagName === "TD" ? content : cell("td", content, j))));
  return make("div", {class: "wide"}, make("table", {}, caption && make("caption", {}, caption) || "",
    make("thead", {}, make("tr", {}, ...header.map((name, j) => cell("th", name, j)))), make("tbody", {}, ...body)));
}

// A name that may break after each of its underscores.
function breakable(name) { return name.split(/(?<=_)/).flatMap((part, i) => i ? [make("wbr"), part] : [part]); }

function bar(parts, whole) {
  const td = make("td", {class: "bars"});
  for (const [kind, value] of parts) if (value > 0) {
    const piece = make("span", {class: `bar ${kind}`, title: kind});
    piece.style.width = `${Math.max(1, 100 * value / whole)}%`;
    td.append(piece);
  }
  return td;
}

function phaseTable(phase, i) {
  const kinds = DATA.details.kinds;
  const rows = phase.operators.map(operator => ({operator, ms: operator.ms.map(column => column[i])}))
    .map(({operator, ms}) => ({operator, ms, total: ms.reduce((a, b) => a + b, 0)})).filter(r => r.total > 0).sort((a, b) => b.total - a.total);
  if (!rows.length) return [];
  const total = rows.reduce((sum, r) => sum + r.total, 0), most = rows[0].total;
  const shares = kinds.map((kind, k) => [kind.words, rows.reduce((sum, r) => sum + r.ms[k], 0)]).filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]);
  const said = shares.map(([words, v]) => `${number(100 * v / total, 3)} % ${words}`).join(", ");
  const body = rows.map(r => [r.operator.name, bar(kinds.map((kind, k) => [kind.name, r.ms[k]]), most * 1.02), number(r.total, 4), `${(100 * r.total / total).toFixed(1)} %`,
    number(r.operator.gflop[i], 3), number(r.operator.mb[i], 3), kinds[r.ms.indexOf(Math.max(...r.ms))].name]);
  const name = phase.name[0].toUpperCase() + phase.name.slice(1);
  return [make("h3", {}, `${name} ${number(total)} ms`), make("p", {class: "quiet"}, said),
    table(null, ["operator", "", "ms", "share", "GFLOP", "MB", "bound by"], body)];
}

function byteTable(i) {
  const parts = DETAILS.resident.names.map((name, k) => [name, DETAILS.resident.columns[k][i]]).filter(([, gb]) => gb > 0).sort((a, b) => b[1] - a[1]);
  const total = parts.reduce((sum, [, gb]) => sum + gb, 0);
  const body = parts.map(([name, gb]) => [name, bar([["memory", gb]], parts[0][1] * 1.02), number(gb, 4), `${(100 * gb / total).toFixed(1)} %`]);
  return [make("h3", {}, `Resident memory ${number(total, 4)} GB`), table(null, ["part", "", "GB", "share"], body)];
}

function stepTable(i) {
  const {starts, name, changes} = DETAILS.steps, metrics = DATA.details.steps.metrics, body = [];
  for (let k = starts[i]; k < starts[i + 1]; k++) body.push([DATA.details.steps.names[name[k]],
    ...changes.map(column => make("td", {class: column[k] < 0 && "better"}, signed(column[k])))]);
  if (!body.length) return [];
  return [make("h3", {}, "What one step along an axis changes"), table(null, ["step", ...metrics], body)];
}

function lossTable(i) {
  const terms = DETAILS.lossTerms.names.map((name, k) => [name, DETAILS.lossTerms.columns[k][i]]);
  const total = terms.reduce((sum, [, value]) => sum + value, 0);
  return [make("h3", {}, "Loss by term of the law"), table(null, ["term", "value", "share"], terms.map(([name, v]) => [name, number(v, 4), `${(100 * v / total).toFixed(1)} %`]))];
}

function commands(row) {
  return DATA.solved ? [] : [make("h3", {}, "In the terminal"), make("pre", {}, `${DATA.commands.explain} --index ${ROWS.index[row]}`)];
}
