// A run's page: menus of axes, the frontier and its panel, budgets, convergence.
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

axisMenus(CHART.axes, redraw);
drawFrontier();
drawConvergence();
drawBudgets();
rowLinks();
document.getElementById("frontier").addEventListener("keydown", onKey);
select(DATA.start);
whenThemeChanges(redraw);
