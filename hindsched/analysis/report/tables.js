// Tables sort by a click on a heading; everything is filtered by family, runs also by words.
function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keys = new Map();
      for (const row of table.tBodies[0].rows) keys.set(row, key(row.cells[column], heading));
      const rows = [...table.tBodies[0].rows].sort((a, b) => compare(keys.get(a), keys.get(b), down ? -1 : 1));
      table.tBodies[0].append(...rows);
      said.textContent = `Sorted by ${heading.textContent.trim()}, ${down ? "descending" : "ascending"}.`;
    });
  });
}

function key(cell, heading) {
  const value = cell.dataset.v ?? cell.textContent.trim();
  if (heading.dataset.kind !== "number") return value;
  return value === "" ? null : value === "inf" ? Infinity : Number(value);
}

// Absent values stand last in either direction.
function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === "number" ? (a === b ? 0 : a < b ? -1 : 1) : a.localeCompare(b, "en", { numeric: true }));
}

function filter(family, text) {
  for (const part of document.querySelectorAll("[data-family]")) part.hidden = Boolean(family && part.dataset.family !== family);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...document.querySelectorAll("#runs-table tbody tr")];
  for (const row of rows) {
    const cells = row.textContent.toLowerCase();
    row.hidden ||= words.some((word) => !cells.includes(word));
  }
  document.getElementById("count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown.`;
}
