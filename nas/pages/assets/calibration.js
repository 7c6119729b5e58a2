// A calibration's page: predicted over measured times of each phase, errors across what rows differ in, one row taken apart.
const ROWS = decodedAll(DATA.rows), TEXTS = DATA.texts, GROUP = decoded(DATA.group), EVERY = everyRow(DATA.n);
const PREDICTED = [["held_out_ms", "the other models (held out)"], ["in_sample_ms", "all rows (in-sample)"], ["datasheet_ms", "the datasheet"]];
const MARKED = [["model", row => TEXTS.model[row]], ["profile", row => DATA.groups[GROUP[row]]], ["dense or MoE", row => TEXTS.kind[row]],
  ["prompt", row => `${ROWS.prompt_tokens[row].toLocaleString("en-US")} tokens`]];
const ACROSS = [["active_parameters", "active parameters"], ["parameters", "parameters"], ["prompt_tokens", "prompt tokens"], ["measured_ms", "measured (ms)"]];
const NAMED = 24;
const VIEW = {predicted: PREDICTED.findIndex(([name]) => ROWS[name].some(Number.isFinite)), marked: DATA.groups.length > 1 ? 1 : 0, across: 0};

function what(row) { return `${TEXTS.model[row]}, ${TEXTS.phase[row]}, line ${ROWS.line[row]}`; }

function marked(rows) {
  const of = MARKED[VIEW.marked][1], names = [...new Set(EVERY.map(of))];
  return names.map((name, i) => {
    const {colour, marker} = series(i);
    return {rows: rows.filter(row => of(row) === name), colour, marker, size: 9, label: names.length > 1 && names.length <= NAMED ? name : null};
  }).filter(group => group.rows.length);
}

function unnamed(group) { return {...group, label: null}; }

function drawPhases() {
  const predicted = ROWS[PREDICTED[VIEW.predicted][0]];
  LINKED.order = EVERY.slice().sort((a, b) => TEXTS.phase[b].localeCompare(TEXTS.phase[a]) || ROWS.measured_ms[a] - ROWS.measured_ms[b]);
  const first = TEXTS.phase.includes("prefill") ? "prefill" : "decode"; // one legend is enough
  for (const phase of ["prefill", "decode"]) {
    const holder = document.getElementById(phase), rows = EVERY.filter(row => TEXTS.phase[row] === phase && Number.isFinite(predicted[row]));
    if (!rows.length) { holder.replaceChildren(make("p", {class: "quiet"}, `${phase}: nothing to show`)); continue; }
    linkedChart(holder, {x: predicted, y: ROWS.measured_ms, xLabel: `Predicted ${phase} (ms)`, yLabel: "Measured (ms)", xLog: true, yLog: true, height: 400,
      groups: phase === first ? marked(rows) : marked(rows).map(unnamed), lines: [{slope: 1, dash: "solid"}, {slope: 0.8, dash: "dotted"}, {slope: 4 / 3, dash: "dotted"}], what});
  }
  const [name, title] = ACROSS[VIEW.across], {label, values} = readable(title, Float64Array.from(ROWS[name])), error = Float64Array.from(EVERY, row => 100 * (predicted[row] / ROWS.measured_ms[row] - 1));
  const rows = EVERY.filter(row => Number.isFinite(error[row]) && ROWS[name][row] > 0);
  linkedChart(document.getElementById("errors"), {x: values, y: error, xLabel: label, yLabel: "Predicted over measured, less 1 (%)", xLog: true, height: 300,
    groups: marked(rows).map(unnamed), lines: [{slope: 0, dash: "solid"}], what});
}

LINKED.said = row => `${what(row)}: measured ${number(ROWS.measured_ms[row])} ms, held out ${number(ROWS.held_out_ms[row])} ms`;

LINKED.panel = row => {
  const times = [["held out", "held_out_ms"], ["in-sample", "in_sample_ms"], ["datasheet", "datasheet_ms"]].map(([name, key]) => {
    const ms = ROWS[key][row], off = 100 * (ms / ROWS.measured_ms[row] - 1);
    return make("tr", {}, make("td", {class: "words"}, name), make("td", {}, number(ms)), make("td", {}, Number.isFinite(off) ? `${signed(off)} %` : "–"));
  });
  const head = make("tr", {}, ...["predicted by", "ms", "error"].map((name, i) => make("th", {scope: "col", class: i === 0 && "words"}, name)));
  const facts = [["measured ms", number(ROWS.measured_ms[row])], ["phase", TEXTS.phase[row]], ["model", TEXTS.kind[row]], ["parameters", count(ROWS.parameters[row])],
    ["active parameters", count(ROWS.active_parameters[row])], ["prompt tokens", number(ROWS.prompt_tokens[row], 9)],
    ...(TEXTS.phase[row] === "decode" ? [["generated tokens", number(ROWS.generated_tokens[row], 9)]] : []),
    ...(ROWS.attended_tokens[row] ? [["attended tokens", number(ROWS.attended_tokens[row], 9)]] : []), ["line of the table", String(ROWS.line[row])]];
  return [make("p", {}, make("strong", {}, TEXTS.model[row])), make("p", {class: "quiet"}, DATA.groups[GROUP[row]]),
    ...(ROWS.contended[row] ? [make("p", {class: "fault"}, "Measured while others had the processor.")] : []),
    make("dl", {class: "facts"}, ...facts.map(([name, value]) => fact(name, value))), make("h3", {}, "Predictions"),
    make("div", {class: "wide"}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...times)))];
};

function changed(name) { return k => { VIEW[name] = k; redrawn(drawPhases); }; }

document.getElementById("by").append(menuOf("predicted-by", "predicted by", PREDICTED.map(([, words]) => words), VIEW.predicted, changed("predicted")),
  menuOf("marked-by", "marks by", MARKED.map(([name]) => name), VIEW.marked, changed("marked")));
document.getElementById("across").append(menuOf("errors-across", "errors across", ACROSS.map(([, label]) => label), VIEW.across, changed("across")));
redrawn(drawPhases);
linkRows("Show this row", Number, choose);
for (const phase of ["prefill", "decode"]) document.getElementById(phase).addEventListener("keydown", walk);
choose(Number(document.querySelector("tr[data-index]")?.dataset.index ?? -1));
whenThemeChanges(() => redrawn(drawPhases));
