// Budgets that can be moved; the pick is the first row, in pick order, that meets them all, as `select --select best` takes it.
const BUDGETS = DATA.budgets.filter(b => DATA.movable.includes(b.metric)).map(b => ({...b}));
const FIXED = DATA.budgets.filter(b => !DATA.movable.includes(b.metric));
const STEPS = 1000;

function extent(metric) {
  let low = Infinity, high = -Infinity;
  for (const value of ROWS.metrics[metric]) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const own = DATA.budgets.find(b => b.metric === metric);
  if (own) high = DATA.looser ? Math.max(high, own.limit) : own.limit;
  return [low > 0 ? low : high / 1000, high];
}

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
  return high > low ? Math.round(STEPS * Math.log(limit / low) / Math.log(high / low)) : STEPS;
}

function meets(row) {
  for (const {metric, limit} of BUDGETS) if (!(ROWS.metrics[metric][row] / limit - 1 <= 0)) return false;
  for (const {metric, limit} of FIXED) if (!(ROWS.metrics[metric][row] / limit - 1 <= 0)) return false;
  return true;
}

function repick() {
  let pick = -1, fitting = 0;
  for (let row = 0; row < ROWS.n; row++) {
    CHART.inside[row] = meets(row) ? 1 : 0;
    if (CHART.inside[row]) fitting++;
    if (pick < 0 && CHART.inside[row]) pick = row;
  }
  showPick(pick);
  showLimits([...BUDGETS, ...FIXED]);
  clearTimeout(repick.later);
  repick.later = setTimeout(showInside, 120);
  sayPick(pick, fitting);
}

function sayPick(row, fitting) {
  const shown = document.getElementById("pick"), limited = [...new Set([...BUDGETS, ...FIXED].map(b => b.metric))];
  shown.dataset.index = row < 0 ? "" : String(ROWS.index[row]);
  const names = [...new Set(["loss", ...limited, "total_ms", "memory_gb"])].filter(name => name in ROWS.metrics);
  const text = row < 0 ? "Nothing that this page holds meets these budgets." :
    `${names.map(name => `${name} ${number(ROWS.metrics[name][row])}`).join(", ")}: ${designText(ROWS.shape, row)}`;
  const button = make("button", {type: "button", disabled: row < 0}, "Show it");
  button.addEventListener("click", () => select(row));
  shown.replaceChildren(make("strong", {}, row < 0 ? "No pick. " : "Lowest predicted loss: "), text, " ", button);
  shown.title = `${fitting.toLocaleString("en-US")} of ${ROWS.n.toLocaleString("en-US")} rows of this page meet the budgets`;
  document.getElementById("command").textContent = command();
}

function command() {
  const flags = BUDGETS.filter(b => DATA.budgets.find(own => own.metric === b.metric)?.limit !== b.limit).map(b => `${b.metric}=${b.limit}`);
  for (const own of DATA.budgets) if (!FIXED.includes(own) && !BUDGETS.some(b => b.metric === own.metric)) flags.push(`${own.metric}=none`);
  return [DATA.commands.select, ...flags.map(flag => `--budget ${/^[\w.=@+-]+$/.test(flag) ? flag : `'${flag}'`}`)].join(" ");
}

function drawBudgets() {
  const holder = document.getElementById("budgets");
  if (!holder) return;
  holder.replaceChildren(...FIXED.map(b => make("p", {class: "quiet"}, b.metric === "extrapolation" ? "Designs inside of the law's evidence." : `${b.metric} ≤ ${number(b.limit)} (the run's own)`)), ...BUDGETS.map(budgetRow));
  const free = DATA.movable.filter(name => !BUDGETS.some(b => b.metric === name) && Number.isFinite(extent(name)[1]) && extent(name)[1] > 0);
  if (free.length) holder.append(addRow(free));
  repick();
}

function budgetRow(budget) {
  const {metric} = budget, label = `${metric} at most`;
  const slider = make("input", {type: "range", min: 0, max: STEPS, step: 1, "aria-label": label, "data-metric": metric});
  const box = make("input", {type: "text", inputmode: "decimal", "aria-label": `${label}, as a number`, "data-metric": metric, size: 8});
  const show = () => { slider.value = stepOf(metric, budget.limit); slider.setAttribute("aria-valuetext", String(budget.limit)); };
  slider.addEventListener("input", () => { budget.limit = atStep(metric, Number(slider.value)); box.value = budget.limit; box.removeAttribute("aria-invalid"); show(); repick(); });
  box.addEventListener("input", () => {
    const limit = Number(box.value), own = DATA.budgets.find(b => b.metric === metric);
    if (!(limit > 0) || !Number.isFinite(limit) || (!DATA.looser && own && limit > own.limit)) { box.setAttribute("aria-invalid", "true"); return; }
    box.removeAttribute("aria-invalid");
    budget.limit = limit;
    show();
    repick();
  });
  box.value = budget.limit;
  show();
  const own = DATA.budgets.some(b => b.metric === metric), removable = DATA.looser || !own;
  const remove = make("button", {type: "button", "aria-label": `remove the budget on ${metric}`, disabled: !removable}, "×");
  remove.addEventListener("click", () => { BUDGETS.splice(BUDGETS.indexOf(budget), 1); drawBudgets(); });
  return make("div", {class: "budget"}, make("span", {}, `${metric} ≤`), slider, box, remove);
}

function addRow(free) {
  const choice = make("select", {"aria-label": "add a budget on", id: "add"}, make("option", {value: ""}, "add a budget on …"),
    ...free.map(name => make("option", {value: name}, name)));
  choice.addEventListener("change", () => {
    if (!choice.value) return;
    const metric = choice.value, own = DATA.budgets.find(b => b.metric === metric);
    BUDGETS.push({metric, limit: own?.limit ?? atStep(metric, STEPS)});
    drawBudgets();
    document.querySelector(`#budgets input[type=range][data-metric="${CSS.escape(metric)}"]`)?.focus();
  });
  return make("div", {class: "controls"}, choice);
}
