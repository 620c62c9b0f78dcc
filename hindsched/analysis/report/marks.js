"use strict";
// Pictures as SVG whose marks speak: by pointer, by keyboard and to a screen reader.
const data = JSON.parse(document.getElementById("data").textContent);
const said = document.getElementById("said");
const tip = document.getElementById("tip");
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "currentColor", "#B8A800"];
const DASHES = ["", "7 3", "2 3"];

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const colour = (index) => COLOURS[index % COLOURS.length];
const dash = (index) => DASHES[Math.floor(index / COLOURS.length) % DASHES.length];

function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  return String(Number(value.toPrecision(4)));
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function interval(ends) {
  if (ends.lower === null && ends.upper === null) return "no ratio";
  return `[${outward(ends.lower, Math.floor)}, ${outward(ends.upper, Math.ceil)}]`;
}

// An end with four digits, just above 1 as many as tell it from 1, rounded outward: what is said of it stays true.
function outward(end, round) {
  if (typeof end !== "number" || end === 0) return shown(end);
  const above = Number((end - 1).toPrecision(12));
  const small = above > 0 && above < 1 ? -Math.floor(Math.log10(above)) : -Infinity;
  const places = Math.max(3 - Math.floor(Math.log10(Math.abs(end))), small);
  const scaled = Number((end * 10 ** places).toPrecision(12));
  return String(Number(`${round(scaled)}e${-places}`));
}

// A mark of an SVG picture: `say` is what it tells, `open` the part of the page that it leads to.
function mark(shape, attributes, say, open) {
  const more = open ? ` data-open="${open}" style="cursor:pointer"` : "";
  return `<${shape} ${attributes} data-say="${escaped(say)}"${more}/>`;
}

function label(x, y, text, more = "") {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(text)}</text>`;
}

// Cut a label to the width at hand, about eight pixels a letter.
function fitted(text, width) {
  const most = Math.max(4, Math.floor(width / 7.8));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function steps(most, count) {
  for (let size = 1; ; size *= 10) {
    for (const step of [size, 2 * size, 5 * size]) if (most / step <= count) return step;
  }
}

// Put a picture into a box and let its marks speak.
function draw(box, height, title, parts) {
  box.innerHTML =
    `<svg width="${box.clientWidth}" height="${height}" tabindex="0" role="application" ` +
    `aria-roledescription="interactive picture" aria-label="${escaped(title)}. Arrow keys read it.">${parts.join("")}</svg>`;
  const picture = box.firstChild;
  const marks = [...picture.querySelectorAll("[data-say]")];
  let place = -1;
  const leave = () => {
    tip.hidden = true;
    if (place >= 0) marks[place].classList.remove("at");
  };
  picture.addEventListener("pointermove", (event) => {
    const found = event.target.closest("[data-say]");
    if (found) tell(found.dataset.say, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("blur", leave);
  picture.addEventListener("click", (event) => open(event.target.closest("[data-open]")));
  picture.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (move && marks.length) {
      event.preventDefault();
      leave();
      place = (place + move + marks.length) % marks.length;
      marks[place].classList.add("at");
      const where = marks[place].getBoundingClientRect();
      tell(marks[place].dataset.say, where.right, where.bottom);
      said.textContent = marks[place].dataset.say;
    } else if (event.key === "Enter" && place >= 0) open(marks[place]);
    else if (event.key === "Escape") leave();
  });
}

function open(found) {
  if (found && found.dataset.open) location.hash = found.dataset.open;
}

function tell(text, x, y) {
  tip.textContent = text;
  const dialog = document.querySelector("dialog[open]");
  (dialog || document.body).append(tip);
  tip.hidden = false;
  const size = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - size.width - 4))}px`;
  tip.style.top = `${y + 16 + size.height > innerHeight ? y - size.height - 8 : y + 16}px`;
}
