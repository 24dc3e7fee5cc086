// Gives each cell of a table the title of its column, for style.css on narrow screens.
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const titles = [...table.querySelectorAll("thead th")].map(cell => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, i) => { if (titles[i] && cell.textContent.trim()) cell.dataset.label = titles[i]; });
    }
  }
});
