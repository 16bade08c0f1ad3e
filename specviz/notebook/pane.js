// Hosts the app's token pane in a notebook. `PANE` holds the script and the style of the pane; the
// data are described in pane.py. Text is only ever written as text.

function el(name, text) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  return node;
}

async function load() {
  const url = URL.createObjectURL(new Blob([PANE.script], { type: "text/javascript" }));
  try {
    return (await import(url)).render;
  } finally {
    URL.revokeObjectURL(url);
  }
}

function frame(root, words) {
  const bar = el("div");
  bar.className = "nb-bar";
  const back = el("button", words.back);
  const forward = el("button", words.forward);
  back.type = forward.type = "button";
  const place = Object.assign(el("input"), { type: "range", min: 0, step: 1 });
  place.setAttribute("aria-label", words.rounds);
  const count = el("span");
  bar.append(back, forward, place, count);
  const says = el("p");
  says.className = "nb-says";
  says.setAttribute("aria-live", "polite");
  const pane = el("div");
  const outer = el("div");
  outer.className = "sv-root nb-root";
  outer.append(bar, says);
  root.append(outer, pane);
  return { back, forward, place, count, says, pane };
}

// The page's own light or dark, where it says so; else what the system prefers.
function shade(host) {
  const lab = document.body.dataset.jpThemeLight;
  if (lab !== undefined) host.style.colorScheme = lab === "true" ? "light" : "dark";
}

// A card may stand below the pane: what a cell puts out is not cut off at its edge.
function uncut(host) {
  for (let node = host; node && !node.classList.contains("jp-Cell"); node = node.parentElement) {
    node.style.overflow = "visible";
  }
}

async function show({ model, el: host }) {
  const render = await load();
  // Arrow keys belong to the pane, not to the notebook around it.
  host.dataset.lmSuppressShortcuts = "true";
  shade(host);
  for (const still of host.closest(".jp-Cell")?.querySelectorAll(".nb-still") ?? []) still.open = false;
  const root = host.attachShadow({ mode: "open" });
  const style = el("style", PANE.style);
  root.append(style);
  const { pane, says, words } = model.get("run");
  const ui = frame(root, words);
  ui.place.max = String(pane.rounds.length);

  const draw = () => {
    const n = model.get("shown");
    const over = n >= pane.rounds.length;
    render(
      ui.pane,
      {
        ...pane,
        rounds: pane.rounds.slice(0, n),
        now: n ? { round: n - 1, node: null } : null,
        selected: model.get("selected"),
        end: over ? pane.end : null,
        finish: over ? pane.finish : "",
      },
      (name, value) => {
        if (name !== "select") return;
        model.set("selected", value);
        model.save_changes();
      },
    );
    ui.says.textContent = n ? says[n - 1] : words.start;
    ui.place.value = String(n);
    ui.count.textContent = words.place.replace("{n}", n).replace("{all}", pane.rounds.length);
    ui.back.disabled = n <= 0;
    ui.forward.disabled = over;
  };
  const go = (n) => {
    model.set("shown", Math.max(0, Math.min(n, pane.rounds.length)));
    model.save_changes();
  };
  if (host.closest(".jp-Cell")) {
    for (const event of ["pointerover", "focusin"]) {
      ui.pane.addEventListener(event, () => uncut(host), { once: true });
    }
  }
  ui.back.onclick = () => go(model.get("shown") - 1);
  ui.forward.onclick = () => go(model.get("shown") + 1);
  ui.place.oninput = () => go(Number(ui.place.value));
  model.on("change:shown", draw);
  model.on("change:selected", draw);
  draw();
}

export default { render: show };
