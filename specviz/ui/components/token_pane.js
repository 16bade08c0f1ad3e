// The token pane. `render(root, data, emit)` draws; the default export is the Streamlit component.
// Token text arrives as data and is written as text, never as markup. Words arrive in `data` too.
// The payload is described in specviz/views/tokens.py.

const panes = new WeakMap();
const GLYPH = 0.52; // width of a character of running text, in its height
const LONGEST = 24; // characters a line can always hold; longer runs may break anywhere

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  return render(parentElement, data, (name, value) => {
    if (name === "select") setTriggerValue("select", value);
  });
}

export function render(root, data, emit) {
  let pane = panes.get(root);
  if (!pane) {
    pane = build(root);
    panes.set(root, pane);
  }
  pane.emit = emit;
  update(pane, data);
  return () => {
    panes.delete(root);
    pane.root.remove();
  };
}

function el(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function build(root) {
  const pane = { root: el("div", "sv-root"), rows: [], chosen: {}, emit: () => {} };
  pane.bar = el("div", "sv-bar");
  pane.legend = el("ul", "sv-legend");
  pane.toggles = el("div", "sv-toggles");
  pane.bar.append(pane.legend, pane.toggles);
  pane.scroll = el("div", "sv-scroll");
  pane.prompt = el("details", "sv-prompt");
  pane.flow = el("div", "sv-flow");
  pane.flow.setAttribute("role", "listbox");
  pane.finish = el("p", "sv-finish");
  pane.scroll.append(pane.prompt, pane.flow, pane.finish);
  pane.card = el("div", "sv-card");
  pane.card.setAttribute("role", "tooltip");
  pane.card.id = "sv-card";
  pane.card.hidden = true;
  pane.live = el("p", "sv-live");
  pane.live.setAttribute("aria-live", "polite");
  pane.root.append(pane.bar, pane.scroll, pane.card, pane.live);
  root.append(pane.root);
  listen(pane);
  return pane;
}

function update(pane, data) {
  const before = pane.data;
  const fresh = !before || before.id !== data.id;
  pane.data = data;
  if (fresh || same(before.options, data.options) === false) pane.chosen = { ...data.options };
  drawBar(pane, before);
  drawPrompt(pane, fresh);
  drawRounds(pane, fresh);
  pane.finish.textContent = data.finish ?? "";
  pane.finish.hidden = !data.finish;
  if (pane.live.textContent !== data.live) pane.live.textContent = data.live ?? "";
  pane.scroll.style.maxHeight = data.height ?? "";
  pane.flow.setAttribute("aria-label", data.words.pane);
  reserve(pane);
  mark(pane);
  if (fresh || before.now?.round !== data.now?.round) follow(pane);
}

// Room for the whole run from the start, so that nothing below moves while one steps through it.
function reserve(pane) {
  const [kept, loose] = pane.data.reserve;
  const { fontSize, lineHeight } = getComputedStyle(pane.flow);
  const size = (kept + (pane.chosen.rejected ? loose : 0)) * parseFloat(fontSize) * GLYPH;
  const lines = Math.ceil(size / (pane.flow.clientWidth || Infinity)) * parseFloat(lineHeight);
  pane.flow.style.minHeight = `min(${lines}px, ${pane.data.height} - 4rem)`;
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

// ---- legend and toggles ------------------------------------------------------------------------

function drawBar(pane, before) {
  const { data } = pane;
  if (!before || !same(before.legend, data.legend)) {
    pane.legend.setAttribute("aria-label", data.words.legend);
    pane.legend.replaceChildren(
      ...data.legend.map(([code, label, meaning]) => {
        const item = el("li");
        item.title = meaning;
        item.append(el("span", `sv-tok sv-${code}`, label));
        return item;
      }),
    );
  }
  if (!before || !same(before.toggles, data.toggles)) {
    pane.toggles.replaceChildren(
      ...data.toggles.map(([name, label]) => {
        const button = el("button", "sv-toggle", label);
        button.type = "button";
        button.dataset.name = name;
        return button;
      }),
    );
  }
  drawOptions(pane);
}

function drawOptions(pane) {
  for (const button of pane.toggles.children) {
    button.setAttribute("aria-pressed", String(Boolean(pane.chosen[button.dataset.name])));
  }
  for (const name of ["rejected", "whitespace", "mono"]) {
    pane.root.classList.toggle(`sv-with-${name}`, Boolean(pane.chosen[name]));
  }
}

// ---- prompt and rounds -------------------------------------------------------------------------

function drawPrompt(pane, fresh) {
  const { prompt } = pane.data;
  const signature = JSON.stringify([prompt, pane.chosen.whitespace]);
  if (!fresh && pane.promptSignature === signature) return;
  pane.promptSignature = signature;
  const text = el("div", "sv-prompt-text");
  if (prompt.note) text.append(el("span", "sv-note", prompt.note));
  for (const piece of prompt.texts) {
    const cell = el("span", "sv-tok sv-prompt-tok");
    write(cell, piece, pane.chosen.whitespace);
    text.append(cell);
  }
  pane.prompt.replaceChildren(el("summary", "", prompt.summary), text);
}

// Only rounds whose data changed are built again: stepping touches one or two.
function drawRounds(pane, fresh) {
  const { rounds, end } = pane.data;
  if (fresh) {
    pane.rows = [];
    pane.flow.replaceChildren();
  }
  const focused = held(pane);
  rounds.forEach((row, at) => {
    const cut = end && end[0] <= row.i ? end : null;
    const signature = JSON.stringify([row, pane.chosen.whitespace, cut]);
    if (pane.rows[at]?.signature === signature) return;
    const node = drawRound(pane, row, cut);
    if (at < pane.rows.length) pane.rows[at].node.replaceWith(node);
    else pane.flow.append(node);
    pane.rows[at] = { signature, node, row };
  });
  while (pane.rows.length > rounds.length) pane.rows.pop().node.remove();
  if (focused) find(pane, focused.round, focused.node)?.focus({ preventScroll: true });
}

function drawRound(pane, row, cut) {
  const node = el("span", "sv-round");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", `${pane.data.words.round} ${row.i + 1}`);
  // a word joiner keeps the number on the line of the first token
  const number = el("span", "sv-number", `${row.i + 1}\u2060`);
  number.setAttribute("aria-hidden", "true");
  node.append(el("wbr"), number);
  let run = 0; // characters since the last place where a line may end
  cellsOf(row).forEach((cell, at) => {
    const text = typeof cell.text === "string" ? cell.text : String(cell.text || "");
    const apart = /^\s/.test(text) || run + text.length > LONGEST;
    if (at && apart) node.append(el("wbr"));
    run = at && !apart ? run + text.length + 1 : text.length + 1;
    const span = drawCell(pane, row, cell, cut);
    if (text.length <= LONGEST) span.classList.add("sv-whole");
    node.append(span);
  });
  return node;
}

// The cells of a round in reading order: kept drafts, drafts that were not kept, the target's own.
function cellsOf(row) {
  const kept = row.k.length - (row.last ? 1 : 0);
  const cells = [];
  for (let j = 0; j < kept; j++) {
    const node = row.p ? row.p[j] : j;
    cells.push({ node, code: row.k[j], text: row.c[j], id: row.t[j], position: row.s + j, at: j });
  }
  for (let j = 0; j < row.f.length; j++) {
    const node = row.n ? row.n[j] : kept + j;
    const position = row.s + (row.d ? row.d[j] : kept + j);
    const fork = Boolean(row.b && row.b.includes(j));
    cells.push({ node, code: row.f[j], text: row.r[j], id: row.rt[j], position, loose: true, fork });
  }
  if (row.last) {
    const j = kept;
    cells.push({ node: "last", code: row.k[j], text: row.c[j], id: row.t[j], position: row.s + j, at: j });
  }
  return cells;
}

function drawCell(pane, row, cell, cut) {
  const span = el("span", `sv-tok sv-${cell.code}`);
  span.setAttribute("role", "option");
  span.tabIndex = -1;
  span.cell = cell;
  span.row = row;
  if (cell.loose) span.classList.add("sv-loose");
  if (cell.fork) span.classList.add("sv-fork");
  const tail = tailOf(row, cell, cut);
  if (tail === null) {
    write(span, cell.text, pane.chosen.whitespace);
  } else {
    const text = String(cell.text || "");
    write(span, text.slice(0, tail), pane.chosen.whitespace);
    const hidden = el("span", "sv-cut");
    write(hidden, text.slice(tail), pane.chosen.whitespace);
    span.append(hidden);
  }
  return span;
}

// Where the visible output ends inside this cell (a stop string is not part of it), else null.
function tailOf(row, cell, cut) {
  if (!cut || cell.at === undefined || typeof cell.text !== "string") return null;
  const [round, at, characters] = cut;
  if (row.i > round || cell.at > at) return 0;
  return cell.at === at ? characters : null;
}

// A string is text; [string] stands for bytes that are no text; 0 says that the character started
// in an earlier cell. Line ends are always drawn, spaces and tabs if asked for.
function write(cell, text, whitespace) {
  if (text === 0) return cell.classList.add("sv-rest");
  if (Array.isArray(text)) {
    cell.classList.add("sv-bytes");
    return cell.append(text[0]);
  }
  if (text === "") return cell.classList.add("sv-empty");
  if (text.endsWith("\n")) cell.classList.add("sv-ends");
  for (const part of text.split(whitespace ? /([ \t\n])/ : /(\n)/)) {
    if (part === "") continue;
    const sign = { " ": "sv-space", "\t": "sv-tab", "\n": "sv-line" }[part];
    if (sign && (whitespace || part === "\n")) cell.append(el("span", sign, part));
    else cell.append(part);
  }
}

// ---- where the cursor is -----------------------------------------------------------------------

function find(pane, round, node) {
  const entry = pane.rows.find((candidate) => candidate.row.i === round);
  return entry && tokens(entry.node).find((span) => span.cell.node === node);
}

function tokens(node) {
  return [...node.children].filter((child) => child.cell);
}

function mark(pane) {
  const { now, selected } = pane.data;
  for (const { node, row } of pane.rows) node.classList.toggle("sv-current", row.i === now?.round);
  for (const old of pane.flow.querySelectorAll(".sv-active,.sv-selected")) {
    old.classList.remove("sv-active", "sv-selected");
    old.removeAttribute("aria-selected");
  }
  if (now && now.node !== null) find(pane, now.round, now.node)?.classList.add("sv-active");
  const chosen = selected && find(pane, selected.round, selected.node);
  chosen?.classList.add("sv-selected");
  chosen?.setAttribute("aria-selected", "true");
  if (!pane.stop?.isConnected) rove(pane, chosen ?? lastToken(pane));
}

function lastToken(pane) {
  const row = pane.rows.at(-1);
  return row && tokens(row.node).at(-1);
}

// Exactly one token is in the tab order; arrows move it.
function rove(pane, span) {
  if (!span) return;
  if (pane.stop) pane.stop.tabIndex = -1;
  pane.stop = span;
  span.tabIndex = 0;
}

function follow(pane) {
  const row = pane.rows.find((candidate) => candidate.row.i === pane.data.now?.round);
  if (!row) return;
  const box = pane.scroll.getBoundingClientRect();
  const own = row.node.getBoundingClientRect();
  const space = 24;
  if (own.bottom > box.bottom - space) pane.scroll.scrollTop += own.bottom - box.bottom + space;
  else if (own.top < box.top + space) pane.scroll.scrollTop += own.top - box.top - space;
}

// ---- pointer and keyboard ----------------------------------------------------------------------

function listen(pane) {
  const over = (event) => {
    const span = event.target.closest?.(".sv-flow .sv-tok");
    if (span) showCard(pane, span);
    else hideCard(pane);
  };
  pane.flow.addEventListener("pointerover", over);
  pane.flow.addEventListener("pointerleave", () => hideCard(pane));
  pane.scroll.addEventListener("scroll", () => hideCard(pane), { passive: true });
  pane.flow.addEventListener("focusin", (event) => {
    if (!event.target.cell) return;
    rove(pane, event.target);
    showCard(pane, event.target);
  });
  pane.flow.addEventListener("focusout", () => hideCard(pane));
  pane.flow.addEventListener("click", (event) => {
    const span = event.target.closest(".sv-tok");
    if (span && !String(span.ownerDocument.getSelection() ?? "")) select(pane, span);
  });
  pane.flow.addEventListener("keydown", (event) => onKey(pane, event));
  pane.toggles.addEventListener("click", (event) => {
    const name = event.target.dataset.name;
    if (!name) return;
    pane.chosen[name] = !pane.chosen[name];
    drawOptions(pane);
    drawPrompt(pane, false);
    drawRounds(pane, false);
    mark(pane);
    pane.emit("option", { name, value: pane.chosen[name] });
  });
}

function select(pane, span) {
  rove(pane, span);
  pane.emit("select", { round: span.row.i, node: span.cell.node });
}

// Handled keys stop here, so that the page's own shortcuts do not fire as well.
function onKey(pane, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !event.target.cell) return;
  const span = event.target;
  const moves = { ArrowRight: 1, ArrowLeft: -1 };
  const jumps = { ArrowDown: 1, ArrowUp: -1 };
  let goal = null;
  if (event.key in moves) goal = neighbour(pane, span, moves[event.key]);
  else if (event.key in jumps) goal = roundAway(pane, span, jumps[event.key]);
  else if (event.key === "Home") goal = visible(pane)[0];
  else if (event.key === "End") goal = visible(pane).at(-1);
  else if (event.key === "Enter" || event.key === " ") select(pane, span);
  else if (event.key === "Escape") hideCard(pane);
  else return;
  event.preventDefault();
  event.stopPropagation();
  goal?.focus();
}

function visible(pane) {
  const all = [...pane.flow.querySelectorAll(".sv-tok")];
  return pane.chosen.rejected ? all : all.filter((span) => !span.classList.contains("sv-loose"));
}

function neighbour(pane, span, step) {
  const all = visible(pane);
  return all[all.indexOf(span) + step];
}

function roundAway(pane, span, step) {
  const at = pane.rows.findIndex((row) => row.node === span.parentNode);
  const row = pane.rows[at + step];
  return row && visible(pane).find((candidate) => candidate.parentNode === row.node);
}

function held(pane) {
  const span = pane.root.getRootNode().activeElement;
  return span?.cell && pane.flow.contains(span) ? { round: span.row.i, node: span.cell.node } : null;
}

// ---- the card ----------------------------------------------------------------------------------

function showCard(pane, span) {
  const { cell, row } = span;
  const { words, details } = pane.data;
  const lines = details[row.i]?.[cell.node] ?? [
    [words.id, String(cell.id)],
    [words.position, String(cell.position)],
    ["", words.more],
  ];
  const list = el("dl");
  for (const [name, value] of lines) {
    if (name) list.append(el("dt", "", name));
    list.append(el("dd", name ? "" : "sv-sentence", value));
  }
  const head = el("div", "sv-card-head");
  head.append(
    el("span", `sv-tok sv-${cell.code}`, words.kinds[cell.code]),
    el("span", "sv-card-round", `${words.round} ${row.i + 1}`),
  );
  pane.card.replaceChildren(head, list);
  pane.card.hidden = false;
  span.setAttribute("aria-label", `${span.textContent} (${words.kinds[cell.code]})`);
  span.setAttribute("aria-describedby", pane.card.id);
  place(pane, span);
}

function place(pane, span) {
  const outer = pane.root.getBoundingClientRect();
  const own = span.getClientRects()[0] ?? span.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = pane.card;
  const left = Math.max(8, Math.min(own.left - outer.left, outer.width - width - 8));
  const below = own.bottom - outer.top + 6;
  const above = own.top - outer.top - height - 6;
  const fits = outer.top + below + height <= window.innerHeight;
  pane.card.style.left = `${left}px`;
  pane.card.style.top = `${fits || outer.top + above < 0 ? below : above}px`;
}

function hideCard(pane) {
  pane.card.hidden = true;
}
