// Adds a filter to pages with long tables: an input that hides the rows without the typed words.
// Without this script the tables are complete.
(() => {
  const ENOUGH_ROWS = 20;
  const LEGEND_ROWS = 4; // shorter tables explain the words of the others and stay as they are
  const isLong = (table) => table.tBodies.length > 0 && table.tBodies[0].rows.length > LEGEND_ROWS;
  const tables = [...document.querySelectorAll("article table")].filter(isLong);
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  if (rows.length < ENOUGH_ROWS) return;

  const box = document.createElement("div");
  box.className = "table-filter";
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "Filter the rows of the tables";
  input.setAttribute("aria-label", "Filter the rows of all tables on this page");
  const count = document.createElement("output");
  box.append(input, count);
  const first = tables[0].closest(".table-wrapper") ?? tables[0];
  first.before(box);

  const texts = rows.map((row) => row.textContent.toLowerCase());
  const update = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    for (const table of tables) {
      table.hidden = words.length > 0 && [...table.tBodies[0].rows].every((row) => row.hidden);
    }
    count.textContent = words.length > 0 ? `${shown} of ${rows.length} rows` : "";
  };
  input.addEventListener("input", update);
})();
