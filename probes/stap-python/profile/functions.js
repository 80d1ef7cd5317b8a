// A table of functions in a browser: a click on a head sorts, a regular expression filters.
//
// SPDX-License-Identifier: MIT
{
  const table = document.getElementById("functions");
  const heads = Array.from(table.tHead.rows[0].cells);
  const rows = Array.from(table.tBodies[0].rows, (row) => ({ row, cells: Array.from(row.cells, (cell) => cell.textContent) }));
  const name = heads.length - 1;

  // Numbers have the largest first, names the first; a second click on the same head turns that round.
  const sort = (column) => {
    const first = column === name ? "ascending" : "descending";
    const second = column === name ? "descending" : "ascending";
    const order = heads[column].getAttribute("aria-sort") === first ? second : first;
    const sign = order === "ascending" ? 1 : -1;
    const compare = (one, other) => (column === name ? (one < other ? -1 : one > other ? 1 : 0) : one - other);
    rows.sort((one, other) => sign * compare(one.cells[column], other.cells[column]));
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", order);
    table.tBodies[0].append(...rows.map((entry) => entry.row));
  };

  const filter = (wanted) => {
    let pattern;
    try {
      pattern = new RegExp(wanted);
    } catch (error) {
      document.getElementById("found").textContent = "not a regular expression";
      return;
    }
    for (const entry of rows) entry.row.hidden = !pattern.test(entry.cells[name]);
    const found = rows.filter((entry) => !entry.row.hidden).length;
    document.getElementById("found").textContent = wanted ? found + " of " + rows.length : "";
  };

  heads.forEach((head, column) => head.addEventListener("click", () => sort(column)));
  document.getElementById("filter").addEventListener("input", (event) => filter(event.target.value));
}
