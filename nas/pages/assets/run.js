// A run's page: the frontier, the recommended design and its budgets; what is in folds is drawn when they are opened.
function redraw() {
  const {row} = STATE;
  drawFrontier();
  drawStrips();
  drawConvergence();
  repick();
  settle();
  select(row);
}

axisMenus(CHART.axes, redraw);
drawFrontier();
drawBudgets();
settle();
linkRows("Show this architecture", index => ROWS.index.indexOf(index), select);
for (const [id, draw] of [["strips", drawStrips], ["convergence", drawConvergence]]) document.getElementById(id)?.closest("details").addEventListener("toggle", draw);
document.getElementById("frontier").addEventListener("keydown", event => walkAlong(event, CHART.live.order, STATE.row, select));
whenThemeChanges(redraw);
