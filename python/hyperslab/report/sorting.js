// A click on a heading sorts its table: by the numbers in data-by, the largest first, or by the text of the cells.
"use strict";
for (const table of document.querySelectorAll("table[data-sorts]")) {
  const body = table.tBodies[0], headings = [...table.tHead.rows[0].cells];
  const valueOf = (row, place) => {
    const cell = row.cells[place];
    return "by" in cell.dataset ? Number(cell.dataset.by) : cell.textContent;
  };
  const compare = (one, other) => typeof one === "number" ? one - other : one.localeCompare(other);
  headings.forEach((heading, place) => heading.addEventListener("click", () => {
    if (!body.rows.length) return;
    const isText = typeof valueOf(body.rows[0], place) !== "number";
    const before = heading.getAttribute("aria-sort"), first = isText ? "ascending" : "descending";
    const order = before === first ? (isText ? "descending" : "ascending") : first;
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [valueOf(row, place), row]);
    rows.sort((one, other) => sign * compare(one[0], other[0]));
    body.append(...rows.map((pair) => pair[1]));
  }));
}
