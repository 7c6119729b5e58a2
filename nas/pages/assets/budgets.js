// Budgets that can be moved; the pick is the first row, in pick order, that meets them all, as `select --select best` takes it.
const BUDGETS = DATA.budgets.filter(b => DATA.movable.includes(b.metric)).map(b => ({...b})), [ACROSS] = DATA.axes;
if (DATA.movable.includes(ACROSS) && limitable(ACROSS) && !BUDGETS.some(b => b.metric === ACROSS)) BUDGETS.push({metric: ACROSS, limit: Infinity}); // no limit until it is moved
const FIXED = DATA.budgets.filter(b => !DATA.movable.includes(b.metric));
const TITLE = document.querySelector("h1").textContent;
const STEPS = 1000, MARGIN = "@q80", WHY = [...document.getElementById("pick").childNodes]; // of what was written before any script: why nothing fits

function extent(metric) {
  let low = Infinity, high = -Infinity;
  for (const value of ROWS.metrics[metric]) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const own = DATA.budgets.find(b => b.metric === metric);
  if (own) high = DATA.looser ? Math.max(high, own.limit) : own.limit;
  return [low > 0 ? low : high / 1000, high];
}

function limitable(metric) { const [, high] = extent(metric); return Number.isFinite(high) && high > 0; }

// Rounded up to four digits, so that what lies at the limit stays within it.
function written(value) {
  const scale = 10 ** (3 - Math.floor(Math.log10(value)));
  return Number((Math.ceil(value * scale * (1 - 1e-12)) / scale).toPrecision(4));
}

function atStep(metric, step) {
  const [low, high] = extent(metric), own = DATA.budgets.find(b => b.metric === metric);
  const value = written(low * (high / low) ** (step / STEPS));
  return own && !DATA.looser ? Math.min(value, own.limit) : value;
}

function stepOf(metric, limit) {
  const [low, high] = extent(metric);
  return high > low && limit < Infinity ? Math.round(STEPS * Math.log(limit / low) / Math.log(high / low)) : STEPS;
}

function held() { return [...BUDGETS, ...FIXED].filter(b => b.limit < Infinity); }

function repick() {
  const limits = held().map(({metric, limit}) => [ROWS.metrics[metric], limit]);
  CHART.inside = CHART.inside.map((_, row) => limits.every(([values, limit]) => values[row] / limit - 1 <= 0));
  const margins = held().filter(b => b.metric + MARGIN in ROWS.metrics).map(b => [ROWS.metrics[b.metric + MARGIN], b.limit]);
  const safe = CHART.inside.findIndex((one, row) => one && margins.every(([values, limit]) => values[row] <= limit)); // times in 4 of 5 cases
  const pick = safe < 0 ? CHART.inside.indexOf(1) : safe, fitting = CHART.inside.reduce((sum, one) => sum + one, 0);
  showPick(pick);
  showLimits(held());
  clearTimeout(repick.later);
  repick.later = setTimeout(settle, 120);
  sayPick(pick, fitting, margins.length && safe >= 0);
}

// What takes too long while a slider moves: every dot, and the recommended design part by part.
function settle() {
  clearTimeout(repick.later);
  showInside();
  select(CHART.pick);
  document.getElementById("said").textContent = ""; // the sentence says it
}

// `470 of 500 ms` and ` (prefill + decode)`
function takenText(name, row, limit) {
  const [words, unit] = labelOf(name), size = [number(ROWS.metrics[name][row], 3), ...(limit ? [number(limit, 4)] : [])].join(" of ");
  return [`${size} ${unit}`.trim(), ` (${words[0].toLowerCase()}${words.slice(1)})`];
}

// The recommended design in a sentence, what it is made of, and how sure it is to beat the first published model.
function sayPick(row, fitting, kept) {
  const shown = document.getElementById("pick"), limits = Object.fromEntries(held().map(b => [b.metric, b.limit]));
  shown.dataset.index = row < 0 ? "" : String(ROWS.index[row]);
  shown.title = `${fitting.toLocaleString("en-US")} of ${ROWS.n.toLocaleString("en-US")} rows of this page meet the budgets`;
  document.getElementById("command").textContent = [DATA.commands.select, ...flags()].join(" ");
  sayTitle();
  if (row < 0) return shown.replaceChildren(...(WHY.length && !flags().length ? WHY : [make("p", {}, "Nothing that this page holds meets these budgets."), closest(limits)]));
  const {params_total, params_active, loss} = ROWS.metrics, i = DETAILED.get(row), strong = text => make("strong", {}, text);
  const names = [...new Set([...Object.keys(limits), "total_ms", ...("resident_gb" in limits ? [] : ["memory_gb"])])].filter(name => name !== "extrapolation");
  names.sort((a, b) => labelOf(b)[1].localeCompare(labelOf(a)[1])); // times first
  const takes = names.flatMap((name, k) => {
    const [size, words] = takenText(name, row, limits[name]);
    return [k ? (k === names.length - 1 ? " and " : ", ") : "", strong(size), words];
  });
  const active = ROWS.shape.n_experts[row] > 1 ? ` (${spelled(params_active[row])} active)` : "";
  const [beside] = i === undefined ? [] : DATA.differences, outside = i !== undefined && DETAILS.extrapolates[i] ? "The law extrapolates here. " : "";
  shown.replaceChildren(
    make("p", {}, "A model of ", strong(`${spelled(params_total[row])} parameters`), `${active} has the lowest predicted loss ${kept ? "that keeps these budgets in 4 of 5 cases" : "within these budgets"}, `,
      strong(`${loss[row].toFixed(2)} nats`), ROWS.shape.tokens ? "" : DATA.tokens, "; it takes ", ...takes, "."),
    make("p", {}, `${designText(ROWS.shape, row)}.`),
    make("p", {}, i !== undefined && DETAILS.ranges[i] ? `${DETAILS.ranges[i]}.` : ""),
    make("p", {class: "quiet"}, outside, beside ? `Against ${beside.label} trained alike: ${beside.words[i]}.` : ""));
  explainWords(shown);
}

// The heading with the budgets as they are moved.
function sayTitle() {
  const limits = held().filter(b => b.metric !== "extrapolation").map(b => [...labelOf(b.metric), number(b.limit, 4)]);
  const alike = new Set(limits.map(([, unit]) => unit)).size < limits.length;
  const amounts = limits.map(([words, unit, limit]) => `${limit} ${unit}${alike || !unit ? ` ${words.toLowerCase()}` : ""}`).join(" and ");
  const [head, , on] = TITLE.match(/^(.*?)( within .*?)?( on .*)$/)?.slice(1) ?? [TITLE, "", ""];
  document.querySelector("h1").textContent = flags().length ? `${head}${amounts && ` within ${amounts}`}${on}` : TITLE;
}

// The row that misses its worst budget by the smallest share, and by how much.
function closest(limits) {
  const names = Object.keys(limits), worst = row => Math.max(...names.map(name => ROWS.metrics[name][row] / limits[name]));
  const all = Array.from({length: ROWS.n}, (_, row) => row), held = all.filter(row => FIXED.every(({metric, limit}) => ROWS.metrics[metric][row] <= limit)); // nobody moves these
  const best = (held.length ? held : all).reduce((least, row) => worst(row) < worst(least) ? row : least);
  const missed = names.filter(name => ROWS.metrics[name][best] > limits[name]).map(name => name === "extrapolation" ? "lies outside of the law's evidence" : `takes ${takenText(name, best, limits[name]).join("")}`);
  return make("p", {}, `The nearest ${missed.join(" and ")}: ${designText(ROWS.shape, best)}.`);
}

// What the command must say beside the run's own budgets.
function flags() {
  const moved = held().filter(b => BUDGETS.includes(b) && DATA.budgets.find(own => own.metric === b.metric)?.limit !== b.limit).map(b => `${b.metric}=${b.limit}`);
  for (const own of DATA.budgets) if (!FIXED.includes(own) && !BUDGETS.some(b => b.metric === own.metric)) moved.push(`${own.metric}=none`);
  return moved.map(flag => `--budget ${/^[\w.=@+-]+$/.test(flag) ? flag : `'${flag}'`}`);
}

function drawBudgets() {
  const holder = document.getElementById("budgets");
  holder.replaceChildren(...BUDGETS.map(budgetRow), ...FIXED.map(b => make("p", {class: "quiet"}, b.metric === "extrapolation" ? "Designs inside the law's evidence." : `${metricOf(b.metric).label} ≤ ${number(b.limit)} (the run's own)`)));
  const free = DATA.movable.filter(name => !BUDGETS.some(b => b.metric === name) && limitable(name));
  if (free.length) holder.append(addRow(free));
  repick();
}

function budgetRow(budget) {
  const {metric} = budget, [words, unit] = labelOf(metric), label = `${words} at most`;
  const slider = make("input", {type: "range", min: 0, max: STEPS, step: 1, "aria-label": label, "data-metric": metric});
  const box = make("input", {type: "text", inputmode: "decimal", "aria-label": `${label}, as a number`, "data-metric": metric, size: 8, placeholder: "no limit"});
  const show = () => { slider.value = stepOf(metric, budget.limit); slider.setAttribute("aria-valuetext", budget.limit < Infinity ? String(budget.limit) : "no limit"); };
  slider.addEventListener("input", () => { budget.limit = atStep(metric, Number(slider.value)); box.value = budget.limit; box.removeAttribute("aria-invalid"); show(); repick(); });
  box.addEventListener("input", () => {
    const limit = Number(box.value), own = DATA.budgets.find(b => b.metric === metric);
    if (!(limit > 0) || !Number.isFinite(limit) || (!DATA.looser && own && limit > own.limit)) { box.setAttribute("aria-invalid", "true"); return; }
    box.removeAttribute("aria-invalid");
    budget.limit = limit;
    show();
    repick();
  });
  box.value = budget.limit < Infinity ? budget.limit : "";
  show();
  const own = DATA.budgets.some(b => b.metric === metric), removable = DATA.looser || !own;
  const remove = make("button", {type: "button", "aria-label": `remove the budget on ${metric}`, disabled: !removable}, "×");
  remove.addEventListener("click", () => { BUDGETS.splice(BUDGETS.indexOf(budget), 1); drawBudgets(); });
  return make("div", {class: "budget"}, make("span", {}, label), box, make("span", {class: "quiet"}, unit), remove, slider);
}

function addRow(free) {
  const choice = make("select", {"aria-label": "add a budget on", id: "add"}, make("option", {value: ""}, "add a budget on …"),
    ...free.map(name => make("option", {value: name}, metricOf(name).label)));
  choice.addEventListener("change", () => {
    if (!choice.value) return;
    const metric = choice.value, own = DATA.budgets.find(b => b.metric === metric);
    BUDGETS.push({metric, limit: own?.limit ?? atStep(metric, STEPS)});
    drawBudgets();
    document.querySelector(`#budgets input[type=range][data-metric="${CSS.escape(metric)}"]`)?.focus();
  });
  return make("div", {class: "controls"}, choice);
}
