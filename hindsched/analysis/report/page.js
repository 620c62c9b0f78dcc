// Wiring: theme, filters, tables, pictures that follow the width, and addresses such as #run-3.
const family = document.getElementById("family"), find = document.getElementById("find");
const theme = document.getElementById("theme"), dialog = document.getElementById("detail");

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  theme.setAttribute("aria-pressed", String(dark));
}
const preferred = matchMedia("(prefers-color-scheme: dark)");
setTheme(preferred.matches);
preferred.addEventListener("change", () => setTheme(preferred.matches));
theme.addEventListener("click", () => setTheme(theme.getAttribute("aria-pressed") !== "true"));

const DRAW = { ratios: drawRatios, profiles: drawProfiles };
function drawFigure(box) {
  if (!box.clientWidth) return;
  box.dataset.width = box.clientWidth;
  DRAW[box.dataset.plot](box, box.closest("[data-family]").dataset.family);
}
const boxes = [...document.querySelectorAll("[data-plot]")];
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting && !target.dataset.width) drawFigure(target);
}, { rootMargin: "400px" });
boxes.forEach((box) => near.observe(box));
addEventListener("resize", () => {
  for (const box of boxes) if (box.dataset.width && Number(box.dataset.width) !== box.clientWidth) drawFigure(box);
});

document.querySelectorAll("table.sortable").forEach(sortable);
const refilter = () => filter(family.value, find.value);
family.addEventListener("change", refilter);
find.addEventListener("input", refilter);
refilter();

for (const link of document.querySelectorAll("a[data-algorithm]")) {
  link.addEventListener("click", () => {
    family.value = link.closest("tr").dataset.family;
    find.value = link.dataset.algorithm;
    refilter();
  });
}
for (const row of document.querySelectorAll("tr[data-run], tr[data-instance]")) {
  row.addEventListener("click", (event) => {
    if (!event.target.closest("a")) location.hash = row.dataset.run ? `run-${row.dataset.run}` : `instance-${row.dataset.instance}`;
  });
}

function route() {
  const [, kind, index] = location.hash.match(/^#(run|instance)-(\d+)$/) ?? [];
  const rows = kind === "run" ? data.runs : data.instances;
  if (kind && Number(index) < rows.length) (kind === "run" ? showRun : showInstance)(Number(index));
  else if (dialog.open) dialog.close();
}
dialog.addEventListener("close", () => {
  if (/^#(run|instance)-/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search);
});
addEventListener("hashchange", route);
route();
