// Pictures over many runs: ratio intervals and performance profiles, one of each a family.
const LOG_BEYOND = 8;

function drawRatios(box, family) {
  const rows = data.runs.map((run, index) => ({ run, index })).filter(({ run }) => data.instances[run.instance].family === family);
  const names = [...new Set(rows.map(({ run }) => run.algorithm))];
  const ends = rows.flatMap(({ run }) => [run.lower, run.upper]).filter((end) => typeof end === "number");
  const most = Math.max(1.02, ...ends);
  const least = Math.min(1, ...ends);
  const left = Math.min(150, box.clientWidth * 0.32), right = box.clientWidth - 14;
  const log = most > LOG_BEYOND;
  const low = least < 1 ? least * 0.98 : 1;
  const at = (value) => {
    const share = log ? Math.log(value / low) / Math.log(most / low) : (value - low) / (most - low);
    return left + 6 + share * (right - left - 6);
  };
  const heights = names.map((name) => 10 + Math.max(14, 5 * rows.filter(({ run }) => run.algorithm === name).length));
  const bottom = heights.reduce((sum, height) => sum + height, 0);
  const parts = [];
  for (const tick of ratioTicks(low, most, log, Math.max(3, Math.floor((right - left) / 70)))) {
    parts.push(`<line class="axis" x1="${at(tick)}" x2="${at(tick)}" y1="0" y2="${bottom}"/>`);
    parts.push(label(at(tick), bottom + 15, shown(tick), 'text-anchor="middle"'));
  }
  parts.push(`<line class="one" x1="${at(1)}" x2="${at(1)}" y1="0" y2="${bottom}"/>`);
  let top = 0;
  names.forEach((name, place) => {
    const own = rows.filter(({ run }) => run.algorithm === name);
    parts.push(label(left - 6, top + heights[place] / 2 + 4, fitted(name, left - 8), 'text-anchor="end"'));
    parts.push(`<line class="axis" x1="0" x2="${right}" y1="${top + heights[place]}" y2="${top + heights[place]}"/>`);
    own.forEach(({ run, index }, order) => {
      if (typeof run.lower !== "number") return;
      const y = top + 8 + order * ((heights[place] - 12) / Math.max(1, own.length));
      const to = typeof run.upper === "number" ? run.upper : most;
      const say = `${run.label} on ${data.instances[run.instance].name}: ratio ${interval(run)}`;
      const x = at(run.lower), width = Math.max(1, at(to) - x) + 5;
      const open = typeof run.upper === "number" ? "" : ' fill-opacity=".35"';
      parts.push(mark("rect", `x="${x - 3}" y="${y - 2}" width="${width}" height="5" rx="2.5" fill="${colour(place)}"${open}`, say, `run-${index}`));
    });
    const lost = own.filter(({ run }) => typeof run.lower !== "number").length;
    if (lost) parts.push(label(right, top + heights[place] - 5, `${lost} without a finite ratio`, 'text-anchor="end" class="dim"'));
    top += heights[place];
  });
  parts.push(label(4, bottom + 32, `competitive ratio${log ? " (logarithmic)" : ""}; pale: no upper end known`, 'class="dim"'));
  draw(box, bottom + 38, `Ratio intervals of ${family}`, parts);
}

function ratioTicks(low, most, log, count) {
  const ticks = [];
  if (log) {
    for (let power = 0.1; power <= most; power *= 10) for (const digit of [1, 2, 5]) ticks.push(digit * power);
    const inside = ticks.filter((tick) => tick >= low && tick <= most);
    return inside.filter((_, index) => index % Math.ceil(inside.length / count) === 0);
  }
  const size = steps((most - low) * 1000, count) / 1000;
  for (let tick = Math.ceil(low / size) * size; tick <= most; tick += size) ticks.push(tick);
  return ticks;
}

function drawProfiles(box, family) {
  const { factors, shares } = data.profiles[family];
  const names = Object.keys(shares);
  box.innerHTML = '<div class="legend"></div><div class="plot"></div>';
  const [legend, plot] = box.children;
  const off = new Set();
  const redraw = () => profileLines(plot, family, factors, shares, names.filter((name) => !off.has(name)), names);
  names.forEach((name, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.innerHTML = `<i style="border-color:${colour(index)};border-top-style:${dash(index) ? "dashed" : "solid"}"></i>${escaped(name)}`;
    button.addEventListener("click", () => {
      if (!off.delete(name)) off.add(name);
      button.setAttribute("aria-pressed", String(!off.has(name)));
      redraw();
    });
    legend.append(button);
  });
  redraw();
}

function profileLines(box, family, factors, shares, names, all) {
  const left = 44, right = box.clientWidth - 14, bottom = 210, top = 8;
  const last = Math.log(factors[factors.length - 1]) || 1;
  const at = (factor) => left + (Math.log(factor) / last) * (right - left);
  const level = (share) => bottom - share * (bottom - top);
  const parts = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(`<line class="axis" x1="${left}" x2="${right}" y1="${level(share)}" y2="${level(share)}"/>`);
    parts.push(label(left - 6, level(share) + 4, `${100 * share} %`, 'text-anchor="end"'));
  }
  const count = Math.max(2, Math.floor((right - left) / 90));
  for (let tick = 0; tick <= count; tick++) {
    const factor = Math.exp((last * tick) / count);
    parts.push(label(at(factor), bottom + 16, shown(Number(factor.toPrecision(3))), 'text-anchor="middle"'));
  }
  for (const name of names) {
    const index = all.indexOf(name);
    const path = shares[name].map((share, place) => {
      const x = at(factors[place]).toFixed(1), y = level(share).toFixed(1);
      return place ? `H${x}V${y}` : `M${x} ${y}`;
    });
    parts.push(`<path d="${path.join("")}H${right}" fill="none" stroke="${colour(index)}" stroke-width="2" stroke-dasharray="${dash(index)}"/>`);
  }
  const flat = factors[factors.length - 1] === 1; // nobody is ever worse than the best
  const width = flat ? right - left : (right - left) / factors.length;
  factors.forEach((factor, place) => {
    if (flat && place) return;
    const best = names.map((name) => [shares[name][place], name]).sort((a, b) => b[0] - a[0]);
    const say = `within ${shown(factor)} of the best: ${best.map(([share, name]) => `${name} ${percent(share)}`).join(", ")}`;
    parts.push(mark("rect", `x="${flat ? left : at(factor) - width / 2}" y="${top}" width="${width}" height="${bottom - top}" fill="transparent"`, say));
  });
  parts.push(label((left + right) / 2, bottom + 34, "factor of the best algorithm's objective", 'text-anchor="middle" class="dim"'));
  draw(box, bottom + 40, `Performance profiles of ${family}`, parts);
}
