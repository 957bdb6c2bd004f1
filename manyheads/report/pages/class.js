// The class page: show one section or one name alone, and sort a table by a column. Without it the page says the same.
"use strict";
const wanted = {name: "", section: ""}, sections = new Map();
const called = row => row.cells[0].textContent.trim().toLowerCase();
for (const row of document.querySelectorAll("tr[data-section]")) sections.set(called(row), row.dataset.section);
function show() {
  for (const row of document.querySelectorAll("table.people tbody tr:not(.sum)")) {
    const name = called(row);
    row.hidden = !name.includes(wanted.name) || (wanted.section !== "" && sections.get(name) !== wanted.section);
  }
}
for (const control of document.querySelectorAll("[data-filter]")) {
  control.closest("[hidden]")?.removeAttribute("hidden");
  control.addEventListener("input", () => { wanted[control.dataset.filter] = control.value.toLowerCase(); show(); });
}
function key(row, column) {
  const text = row.cells[column].textContent.trim(), number = parseFloat(text);
  return Number.isNaN(number) ? text.toLowerCase() : number;
}
function order(a, b) {
  return typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
}
for (const head of document.querySelectorAll("table.sorted thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const sign = head.ariaSort === "ascending" ? -1 : 1, body = head.closest("table").tBodies[0];
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.ariaSort = sign === 1 ? "ascending" : "descending";
    const rows = [...body.rows].map(row => [key(row, head.cellIndex), row]);
    rows.sort((a, b) => sign * order(a[0], b[0]));
    body.append(...rows.map(each => each[1]));
  });
}
