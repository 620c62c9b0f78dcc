// One run or one optimum in full: facts, files, commands, the schedule, prices, use and the gap.
const ROW = 15, BELOW = 22;

function showRun(index) {
  const run = data.runs[index], item = data.instances[run.instance];
  const seeds = run.seeds.length > 1 ? run.seeds.map(([seed, objective, low, high]) => `seed ${seed}: ${shown(objective)}, ratio ${interval({ lower: low, upper: high })}`).join("; ") : null;
  show(`${run.label} on ${item.name}`, run, item, [
    ["ratio", interval(run) + (run.starred ? " (plain quotient: may do what the offline problem forbids)" : "")],
    ["objective", `${shown(run.objective)}; the optimum lies in ${interval(item)}`],
    ["OPT − ALG", interval(run.less)],
    ["jobs completed", run.completed === null ? null : `${shown(run.completed)} of ${item.jobs}`],
    ["each seed", seeds],
    ["theorem", theorem(run.theorem)],
    ["note", run.note || null],
    ["files", files([item.file, run.solution, item.certificate])],
  ], [["Run it again", run.command], ["Check it without a solver", run.check]]);
}

function showInstance(index) {
  const item = data.instances[index];
  const proofs = { certificate: "by prices that anyone can recompute", "checked fast": "by prices checked in floating point", solver: "on the solver's word", none: "no bound" };
  show(`Optimum of ${item.name}`, item, item, [
    ["optimum", `in ${interval(item)}: ${item.status}, ${proofs[item.proof]}`],
    ["best schedule by", item.best],
    ["size", `${item.jobs} jobs, horizon ${item.horizon}, ${item.sense === "max" ? "maximise" : "minimise"}`],
    ["found by", `${shown(item.method)} (${shown(item.backend)}) in ${shown(item.seconds)} s, stopped by ${shown(item.stopped_by)}`],
    ["sha256", item.sha256],
    ["files", files([item.file, item.solution, item.certificate])],
  ], [["Solve it again", item.command], ["Check it without a solver", item.check]]);
}

function theorem(found) {
  if (!found) return null;
  const broken = found.assumptions.filter((one) => !one.holds).map((one) => `does not hold: ${one.name} (${shown(one.worst)})`);
  return [`${found.kind} ${shown(found.value)}`, ...broken].join("; ");
}

function files(paths) {
  return { html: paths.filter(Boolean).map((path) => `<a href="${escaped(encodeURI(path))}">${escaped(path)}</a>`).join("<br>") };
}

function show(title, found, item, facts, commands) {
  const body = document.getElementById("detail-body");
  const rows = facts.filter(([, value]) => value !== null).map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${value.html ?? escaped(value)}</dd>`);
  const lines = commands.filter(([, command]) => command).map(([name, command]) =>
    `<div class="command"><button type="button" data-copy="${escaped(command)}">Copy</button><div>${escaped(name)}:<br><code>${escaped(command)}</code></div></div>`);
  body.innerHTML = `<h2 id="detail-title">${escaped(title)}</h2><dl>${rows.join("")}</dl>${lines.join("")}<p class="note">Commands run in the folder of this report.</p><div id="drawn"></div>`;
  for (const button of body.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  const dialog = document.getElementById("detail");
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  drawSchedule(document.getElementById("drawn"), found, item.worth);
}

function copy(button) {
  const done = () => { button.textContent = "Copied"; };
  const select = () => getSelection().selectAllChildren(button.parentElement.querySelector("code"));
  if (navigator.clipboard) navigator.clipboard.writeText(button.dataset.copy).then(done, select);
  else select();
}

function drawSchedule(box, found, worth) {
  const schedule = data.schedules[found.task];
  if (!schedule) {
    const why = found.solution ? `The schedule is not drawn here (${data.undrawn} are left in their files); hs.plot.gantt draws one in a notebook.` : "There is no schedule.";
    box.innerHTML = `<p class="note">${why}</p>`;
    return;
  }
  box.innerHTML = '<h3>When jobs run</h3><div class="plot"></div><h3>Where it loses against the bound</h3><div></div><h3>How full servers are</h3><div class="plot"></div>';
  const [, gantt, , gap, , use] = box.children;
  drawGantt(gantt, schedule, worth);
  gap.innerHTML = gapText(schedule.gap);
  if (schedule.use) drawUse(use, schedule);
  else use.innerHTML = '<p class="note">Nothing is used.</p>';
}

function frame(box, last) {
  const left = Math.min(150, box.clientWidth * 0.3), right = box.clientWidth - 8;
  const at = (slot) => left + ((slot - 1) / last) * (right - left);
  const ticks = (y) => {
    const step = steps(last, Math.max(3, Math.floor((right - left) / 60))), parts = [];
    for (let slot = step; slot <= last; slot += step) parts.push(label(at(slot + 0.5), y, slot, 'text-anchor="middle"'));
    return parts;
  };
  return { left, right, at, ticks };
}

function shade(share, tone = "var(--much)") {
  return `color-mix(in srgb, ${tone} ${Math.round(100 * Math.min(1, Math.max(0, share)))}%, var(--little))`;
}

function drawGantt(box, schedule, worth) {
  const { left, at, ticks } = frame(box, schedule.end);
  const parts = [];
  const most = Math.max(1, ...schedule.spans.flatMap((spans) => spans.filter((_, place) => place % 3 === 2)));
  schedule.name.forEach((name, place) => {
    const top = place * ROW, done = schedule.done[place], arrives = at(schedule.arrive[place]);
    parts.push(label(left - 8, top + 12, fitted(name, left - 10), `text-anchor="end"${done === null ? ' class="dim"' : ""}`));
    if (done !== null) parts.push(`<line class="axis" x1="${arrives}" x2="${at(done + 1)}" y1="${top + ROW / 2}" y2="${top + ROW / 2}"/>`);
    const spans = schedule.spans[place];
    for (let k = 0; k < spans.length; k += 3) {
      const [first, last, workers] = spans.slice(k, k + 3);
      const say = `${name}: slots ${first} to ${last}, ${workers} workers`;
      parts.push(mark("rect", `x="${at(first)}" y="${top + 1}" width="${Math.max(1, at(last + 1) - at(first))}" height="${ROW - 2}" fill="${shade(workers / most)}"`, say));
    }
    const end = done === null ? "is not completed" : `completes in slot ${done}`;
    parts.push(mark("path", `d="M${arrives - 5} ${top + 3}l5 4.500l-5 4.500z" fill="currentColor"`, `${name} arrives in slot ${schedule.arrive[place]}, ${end}`));
  });
  let top = schedule.name.length * ROW + 4;
  for (const strip of [...schedule.strips, ...worth]) {
    const high = Math.max(...strip.values.map(Math.abs));
    parts.push(label(left - 8, top + 11, fitted(strip.name, left - 10), 'text-anchor="end" class="dim"'));
    strip.values.forEach((value, place) => {
      const slot = strip.from + place;
      if (slot > schedule.end) return;
      const say = `${strip.name}, slot ${slot}: ${shown(value)}`;
      parts.push(mark("rect", `x="${at(slot)}" y="${top}" width="${at(slot + 1) - at(slot)}" height="${ROW - 3}" fill="${shade(Math.abs(value) / high, "var(--price)")}"`, say));
    });
    top += ROW;
  }
  parts.push(...ticks(top + 13), label(4, top + 28, "slot; triangle: arrival; darker: more, dearer", 'class="dim"'));
  draw(box, top + BELOW + 12, "When jobs run, and prices by slot", parts);
}

function drawUse(box, schedule) {
  const use = schedule.use, { left, at, ticks } = frame(box, schedule.end);
  const parts = [];
  use.rows.forEach((turns, place) => {
    const top = place * ROW;
    parts.push(label(left - 8, top + 12, fitted(use.servers[place], left - 10), 'text-anchor="end"'));
    let slot = 1;
    for (let k = 0; k < turns.length; k += 2) {
      const [share, length] = turns.slice(k, k + 2);
      const say = `${use.servers[place]}: slots ${slot} to ${slot + length - 1}, ${share} % of ${use.resource}`;
      parts.push(mark("rect", `x="${at(slot)}" y="${top}" width="${at(slot + length) - at(slot)}" height="${ROW - 1}" fill="${share ? shade(share / 100) : "transparent"}"`, say));
      slot += length;
    }
  });
  const top = use.rows.length * ROW;
  const more = use.hidden ? `; ${use.hidden} more servers not drawn` : "";
  parts.push(...ticks(top + 13), label(4, top + 28, `${use.resource}: ${use.mean} % of ${use.of} on average${more}`, 'class="dim"'));
  draw(box, top + BELOW + 12, `Use of ${use.resource} by server and slot`, parts);
}

function gapText(gap) {
  if (!gap) return '<p class="note">No certificate: nothing to explain it by.</p>';
  if (gap.reason) return `<p class="note">Not explained: ${escaped(gap.reason)}</p>`;
  const bars = (rows) => rows.map(([name, term, share]) =>
    `<li><b>${escaped(name)}</b><i style="width:${Math.min(100, 100 * share).toFixed(1)}%"></i><span>${shown(term)} (${percent(share)})</span></li>`).join("");
  const note = gap.note ? ` ${escaped(gap.note)}` : "";
  return `<p>${shown(gap.gap)} from the certified bound ${shown(gap.bound)}: ${shown(gap.from_jobs)} by jobs served late or left out, ${shown(gap.from_idle)} by capacity that has a price and stands idle.${note}</p>` +
    (gap.jobs.length ? `<p class="note">Jobs</p><ul class="bars">${bars(gap.jobs)}</ul>` : "") +
    (gap.places.length ? `<p class="note">Idle capacity</p><ul class="bars">${bars(gap.places)}</ul>` : "");
}
