// A run's page: menus of axes, the frontier and its panel, budgets, convergence.
function axisMenus() {
  const holder = document.getElementById("axes");
  if (!holder) return;
  const menu = (name, place) => {
    const choice = make("select", {"aria-label": name, id: `axis-${place}`}, ...DATA.metrics.map(m =>
      make("option", {value: m.name, selected: m.name === CHART.axes[place]}, m.label)));
    choice.addEventListener("change", () => { CHART.axes[place] = choice.value; redraw(); });
    return make("label", {}, `${name} `, choice);
  };
  holder.append(menu("across", 0), menu("up", 1));
}

function redraw() {
  drawFrontier();
  drawConvergence();
  showCursor(STATE.row);
  repick();
}

function rowLinks() {
  for (const line of document.querySelectorAll("tr[data-index]")) {
    const row = ROWS.index.indexOf(Number(line.dataset.index));
    if (row < 0) continue;
    line.classList.add("linked");
    line.tabIndex = 0;
    line.title = "Show this architecture";
    line.addEventListener("click", () => select(row));
    line.addEventListener("keydown", event => { if (event.key === "Enter") select(row); });
  }
}

axisMenus();
drawFrontier();
drawConvergence();
drawBudgets();
rowLinks();
document.getElementById("frontier").addEventListener("keydown", onKey);
select(DATA.start);
whenThemeChanges(redraw);
document.documentElement.dataset.loaded = "yes";
performance.mark("interactive");
