
// ---- the replay: a cursor over the run, without a server ---------------------------------------
// `render` and `el` are those of the token pane above. The data are described in html_replay.py.

const packed = Uint8Array.from(atob(document.getElementById("run").textContent), (c) => c.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
const run = JSON.parse(await new Response(stream).text());
const { words, figures } = run;
const rows = run.pane.rounds;
const BEATS = { step: 0.5, round: 1, real: null, slow: null }; // seconds; null: measured time
const SHORTEST = 0.03; // seconds a step stays on screen, so that it is drawn at all

// `rounds` whole rounds are over and `micro` small steps of the next one: drafts, the scoring
// pass, decisions; the last step completes the round.
const at = { rounds: rows.length, micro: 0, chosen: null };
const ui = {};
let playing = null;

const steps = (i) => run.rounds[i].quotes.length + 1 + run.rounds[i].checks.length + 1;
const shown = () => (at.micro ? at.rounds : at.rounds - 1);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? values[name] : all));

function go(rounds, micro = 0, chosen = null) {
  at.rounds = Math.max(0, Math.min(rounds, rows.length));
  at.micro = at.rounds < rows.length ? Math.max(0, micro) : 0;
  at.chosen = chosen;
  draw();
}

const moves = {
  first: () => go(0),
  roundBack: () => go(at.micro ? at.rounds : at.rounds - 1),
  stepBack: () => {
    if (at.micro) go(at.rounds, at.micro - 1);
    else if (at.rounds) go(at.rounds - 1, steps(at.rounds - 1) - 1);
  },
  play: () => (playing ? pause() : play()),
  step: () => {
    if (at.rounds >= rows.length) return;
    if (at.micro + 1 >= steps(at.rounds)) go(at.rounds + 1);
    else go(at.rounds, at.micro + 1);
  },
  round: () => go(at.rounds + 1),
  last: () => go(rows.length),
};

// ---- the state at the cursor, as a payload of the pane -----------------------------------------

// What is decided of the round under way: nodes drafted, checks made, the node the step is about.
function progress(i, micro) {
  const { quotes, checks, passed } = run.rounds[i];
  const drafted = Math.min(micro, quotes.length);
  const made = Math.max(0, micro - quotes.length - 1);
  const active = micro <= drafted ? micro - 1 : made ? checks[made - 1] : null;
  return { drafted, made, active, scored: micro > quotes.length, passed: passed[made - 1] };
}

// The same row with less of it: texts and fates of each node are those of the whole row.
function partial(i, { drafted, made }) {
  const row = rows[i];
  const { checks, parents, depths } = run.rounds[i];
  const nodes = new Map();
  const kept = row.k.length - (row.last ? 1 : 0);
  for (let j = 0; j < kept; j++) {
    nodes.set(row.p ? row.p[j] : j, { id: row.t[j], text: row.c[j], code: "a", kept: true });
  }
  row.rt.forEach((id, j) => {
    nodes.set(row.n ? row.n[j] : kept + j, { id, text: row.r[j], code: row.f[j] });
  });
  const decided = new Set(checks.slice(0, made));
  const all = [...nodes.keys()].sort((a, b) => a - b).slice(0, drafted);
  const path = all.filter((node) => nodes.get(node).kept && decided.has(node));
  const loose = all.filter((node) => !path.includes(node));
  const small = {
    i: row.i, s: row.s, last: false,
    t: path.map((node) => nodes.get(node).id),
    c: path.map((node) => nodes.get(node).text),
    k: "a".repeat(path.length),
    rt: loose.map((node) => nodes.get(node).id),
    r: loose.map((node) => nodes.get(node).text),
    f: loose.map((node) => (decided.has(node) ? nodes.get(node).code : "p")).join(""),
  };
  if (!parents) return small;
  const starts = loose.map((_, j) => j).filter((j) => j && parents[loose[j]] !== loose[j - 1]);
  return { ...small, p: path, n: loose, d: loose.map((node) => depths[node] - 1), b: starts };
}

function payload() {
  const whole = rows.slice(0, at.rounds);
  const details = Object.fromEntries(whole.map((row) => [row.i, run.rounds[row.i].cards]));
  let now = whole.length ? { round: whole.length - 1, node: null } : null;
  if (at.micro) {
    const state = progress(at.rounds, at.micro);
    whole.push(partial(at.rounds, state));
    now = { round: at.rounds, node: state.active };
    details[at.rounds] = undecided(at.rounds, state.made);
  }
  const complete = at.rounds === rows.length;
  return {
    ...run.pane,
    rounds: whole,
    now,
    details,
    selected: at.chosen,
    live: at.micro ? "" : narration(),
    end: complete ? run.pane.end : null,
    finish: complete ? run.pane.finish : "",
  };
}

// A card must not tell what is still to be decided.
function undecided(i, made) {
  const { cards, checks } = run.rounds[i];
  const known = new Set(checks.slice(0, made).map(String));
  const entries = Object.entries(cards).filter(([node]) => node !== "last");
  return Object.fromEntries(
    entries.map(([node, card]) => [node, known.has(node) ? card : card.slice(0, words.hidden)]),
  );
}

function narration() {
  if (shown() < 0) return words.start;
  const round = run.rounds[shown()];
  if (!at.micro) return round.says;
  const { active, scored, made, passed } = progress(at.rounds, at.micro);
  const values = { round: at.rounds + 1, rows: round.quotes.length + 1 };
  if (scored && !made) return fill(words.score, values);
  const told = { ...values, token: round.quotes[active], n: round.depths[active] };
  return fill(made ? (passed ? words.accepted : words.rejected) : words.draft, told);
}

// ---- playing -----------------------------------------------------------------------------------

function play() {
  if (at.rounds >= rows.length) go(0);
  playing = { started: performance.now(), from: elapsed(), moved: performance.now() };
  drawMoves();
  requestAnimationFrame(tick);
}

function pause() {
  playing = null;
  drawMoves();
}

// Measured seconds up to the cursor.
function elapsed() {
  let sum = 0;
  for (let i = 0; i < at.rounds; i++) sum += run.rounds[i].seconds.reduce((a, b) => a + b, 0);
  if (at.micro) sum += run.rounds[at.rounds].seconds.slice(0, at.micro).reduce((a, b) => a + b, 0);
  return sum;
}

function whereIs(seconds) {
  for (let i = 0; i < rows.length; i++) {
    const parts = run.rounds[i].seconds;
    for (let j = 0; j < parts.length; j++) {
      seconds -= parts[j];
      if (seconds < 0) return [i, j];
    }
  }
  return [rows.length, 0];
}

function tick(time) {
  if (!playing) return;
  const speed = ui.speed.value;
  const beat = BEATS[speed];
  if (beat !== null) {
    if (time - playing.moved >= 1000 * beat) {
      playing.moved = time;
      moves[speed]();
    }
    playing.started = time;
    playing.from = elapsed();
  } else if (time - playing.moved >= 1000 * SHORTEST) {
    playing.moved = time;
    const factor = speed === "slow" ? 0.1 : 1;
    const [rounds, micro] = whereIs(playing.from + (factor * (time - playing.started)) / 1000);
    if (rounds !== at.rounds || micro !== at.micro) go(rounds, micro);
  }
  if (at.rounds >= rows.length) pause();
  else requestAnimationFrame(tick);
}

// ---- drawing -----------------------------------------------------------------------------------

function draw() {
  render(ui.pane, payload(), (name, value) => {
    if (name === "select") go(value.round + 1, 0, value);
  });
  ui.says.textContent = narration();
  ui.place.value = String(at.rounds);
  ui.count.textContent = fill(words.place, { n: at.rounds, all: rows.length });
  drawFigures();
  drawDecision();
  drawMoves();
}

function drawMoves() {
  ui.buttons.play.textContent = playing ? words.moves.pause : words.moves.play;
  for (const name of ["first", "roundBack", "stepBack"]) {
    ui.buttons[name].disabled = !at.rounds && !at.micro;
  }
  for (const name of ["step", "round", "last"]) ui.buttons[name].disabled = at.rounds >= rows.length;
}

function drawFigures() {
  const done = rows.slice(0, at.rounds);
  const tokens = done.reduce((sum, row) => sum + row.t.length, 0);
  const accepted = done.reduce((sum, row) => sum + row.t.length - (row.last ? 1 : 0), 0);
  const drafted = done.reduce((sum, row) => sum + run.rounds[row.i].quotes.length, 0);
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const seconds = sum(done.map((row) => sum(run.rounds[row.i].seconds)));
  const whole = sum(run.rounds.map((round) => sum(round.seconds)));
  const total = rows.reduce((count, row) => count + row.t.length, 0);
  const gain = figures.plain && figures.timed ? (figures.plain * total) / whole : null;
  const values = {
    length: done.length ? (tokens / done.length).toFixed(2) : words.none,
    rate: drafted ? `${Math.round((100 * accepted) / drafted)}% (${accepted}/${drafted})` : words.none,
    tpot: tokens && figures.timed ? `${((1000 * seconds) / tokens).toFixed(1)} ms` : words.none,
    speedup: gain ? `${gain.toFixed(2)}x` : words.none,
    verdict: figures.verdict,
  };
  for (const [name, value] of Object.entries(values)) ui.figures[name].textContent = value;
}

function number(value) {
  if (value < 1 && Number(value.toPrecision(3)) === 1) return words.under;
  return value > 0 && value < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

// The decisions that have been made at the cursor, in the order of the rows.
function decided() {
  if (shown() < 0) return [];
  const { decisions, checks } = run.rounds[shown()];
  if (!at.micro) return Object.keys(decisions);
  return checks.slice(0, progress(at.rounds, at.micro).made).map(String);
}

// The one picked, just decided, or most telling: the first refused, else the last accepted.
function telling(nodes) {
  if (at.chosen && nodes.includes(String(at.chosen.node))) return String(at.chosen.node);
  if (at.micro) return nodes.at(-1);
  const { checks, passed, past } = run.rounds[shown()];
  const refused = checks.find((_, j) => !passed[j]);
  if (refused !== undefined && !past.length) return String(refused);
  return nodes.includes("last") ? nodes.at(passed.includes(true) ? -2 : -1) : nodes.at(-1);
}

function drawDecision() {
  const nodes = decided();
  ui.undecided.hidden = nodes.length > 0;
  ui.node.hidden = ui.chosen.hidden = !nodes.length;
  if (!nodes.length) return;
  const round = run.rounds[shown()];
  ui.node.replaceChildren(
    ...nodes.map((node) => {
      const values = { n: round.depths[node], token: round.quotes[node] };
      const option = el("option", "", node === "last" ? words.own : fill(words.option, values));
      option.value = node;
      return option;
    }),
  );
  ui.node.value = telling(nodes);
  drawChosen();
}

function drawChosen() {
  const told = run.rounds[shown()].decisions[ui.node.value];
  const lines = told.lines.map((line) => el("p", "", line));
  ui.chosen.replaceChildren(el("h3", "", told.title), ...lines);
  if (told.bars.length) ui.chosen.append(table(told));
}

const VALUES = {
  p: (p, q) => p,
  q: (p, q) => q,
  overlap: (p, q) => Math.min(p, q),
  residual: (p, q) => Math.max(p - q, 0),
};

function table(told) {
  const sheet = el("table", "rp-bars");
  sheet.append(el("caption", "", told.reading));
  const head = sheet.createTHead().insertRow();
  head.append(el("th", "", ""), ...told.columns.map((name) => el("th", "", name)));
  const body = sheet.createTBody();
  for (const [label, p, q, chosen] of told.bars) {
    const line = body.insertRow();
    line.classList.toggle("rp-picked", chosen);
    const name = el("th", "", label);
    name.scope = "row";
    line.append(name);
    for (const series of told.series) {
      const value = VALUES[series](p, q);
      const cell = line.insertCell();
      const bar = el("span", `rp-bar rp-${series}`);
      bar.style.width = `${100 * Math.min(1, value)}%`;
      cell.append(bar, el("span", "rp-value", number(value)));
    }
  }
  return sheet;
}

// ---- the frame, built once ---------------------------------------------------------------------

function frameUp() {
  const root = document.getElementById("replay");
  root.replaceChildren();
  ui.figures = {};
  const strip = el("dl", "rp-figures");
  for (const [name, label] of Object.entries(words.figures)) {
    const box = el("div");
    ui.figures[name] = el("dd");
    box.append(el("dt", "", label), ui.figures[name]);
    strip.append(box);
  }
  ui.says = el("p", "rp-says");
  ui.pane = el("div", "rp-pane");
  const panel = el("section", "rp-decision");
  panel.append(el("h2", "", words.decision));
  ui.undecided = el("p", "", words.undecided);
  ui.node = el("select");
  ui.node.setAttribute("aria-label", words.decision);
  ui.node.addEventListener("change", drawChosen);
  ui.chosen = el("div");
  panel.append(ui.undecided, ui.node, ui.chosen);
  root.append(transport(), ui.says, ui.pane, strip, panel);
}

function transport() {
  const bar = el("nav", "rp-moves");
  ui.buttons = {};
  for (const [name, act] of Object.entries(moves)) {
    const button = el("button", "", words.moves[name]);
    button.type = "button";
    button.dataset.move = name;
    button.addEventListener("click", act);
    ui.buttons[name] = button;
    bar.append(button);
  }
  ui.place = el("input");
  Object.assign(ui.place, { type: "range", min: 0, max: rows.length, step: 1 });
  ui.place.setAttribute("aria-label", words.rounds);
  ui.place.addEventListener("input", () => go(Number(ui.place.value)));
  ui.count = el("span", "rp-count");
  ui.speed = el("select");
  ui.speed.setAttribute("aria-label", words.speed);
  ui.speed.append(...words.speeds.map(([value, label]) => Object.assign(el("option", "", label), { value })));
  const shade = el("button", "", words.shade);
  shade.type = "button";
  shade.addEventListener("click", () => {
    const { style } = document.documentElement;
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
      (!style.colorScheme && matchMedia("(prefers-color-scheme: dark)").matches);
    style.colorScheme = dark ? "light" : "dark";
  });
  const label = el("label", "", words.keys);
  ui.keys = Object.assign(el("input"), { type: "checkbox", checked: true });
  label.prepend(ui.keys);
  label.title = words.keyHelp;
  const more = el("div", "rp-more");
  more.append(ui.place, ui.count, ui.speed, label, shade);
  const frame = el("div");
  frame.append(bar, more, el("p", "rp-help", words.keyHelp));
  return frame;
}

const KEYS = {
  ArrowRight: "step", ArrowLeft: "stepBack", n: "round", b: "roundBack", PageDown: "round",
  PageUp: "roundBack", Home: "first", End: "last", " ": "play", p: "play",
};

document.addEventListener("keydown", (event) => {
  if (!ui.keys.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  const { target, key } = event;
  const busy = target.closest?.("input, select") || (key === " " && target.closest?.("button, summary"));
  if (busy || !(key in KEYS)) return;
  event.preventDefault();
  moves[KEYS[key]]();
});

frameUp();
draw();
