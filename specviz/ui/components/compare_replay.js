// Lanes of text on one clock. Text is data: it is only ever written as text.

const lanesOf = (parent) => Array.from(parent.querySelectorAll(".svr-lane"));

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function lane(data, words) {
  const box = element("section", "svr-lane");
  box.setAttribute("aria-label", data.title);
  const head = element("div", "svr-head");
  head.append(element("strong", "", data.title), element("span", "svr-at", ""));
  const track = element("div", "svr-track");
  track.setAttribute("aria-hidden", "true");
  track.append(element("div", "svr-fill"));
  const flow = element("div", "svr-flow");
  flow.tabIndex = 0;
  for (const round of data.rounds) {
    const group = element("span", "svr-round");
    group.dataset.end = round.end;
    for (const [text, code, at] of round.cells) {
      const cell = element("span", `svr-cell sv-${code}`, text);
      cell.dataset.at = at;
      group.append(cell);
    }
    flow.append(group);
  }
  box.append(head, track, flow);
  box.data = data;
  return box;
}

function draw(root, state, words) {
  const t = state.time;
  for (const box of lanesOf(root)) {
    let tokens = 0;
    for (const round of box.querySelectorAll(".svr-round")) {
      const shown = Number(round.dataset.end) <= t + 1e-9;
      round.classList.toggle("svr-later", !shown);
      if (shown) tokens += round.childElementCount;
    }
    const spent = Math.min(t, box.data.seconds);
    const share = state.duration ? spent / state.duration : 1;
    box.querySelector(".svr-fill").style.width = `${100 * share}%`;
    box.querySelector(".svr-at").textContent =
      `${words.tokens.replace("{n}", tokens)} · ${words.seconds.replace("{n}", spent.toFixed(2))}`;
    box.classList.toggle("svr-done", t >= box.data.seconds - 1e-9);
  }
  state.slider.value = String(t);
  state.slider.setAttribute("aria-valuetext", words.seconds.replace("{n}", t.toFixed(2)));
}

// The other lanes go to the same position of the text, which may be at another height there.
function lock(root, state, from) {
  if (!state.lock.checked || state.scrolling) return;
  const flow = from.querySelector(".svr-flow");
  const top = flow.getBoundingClientRect().top;
  const first = Array.from(flow.querySelectorAll(".svr-cell")).find(
    (cell) => cell.getBoundingClientRect().bottom > top,
  );
  if (!first) return;
  state.scrolling = true;
  for (const other of lanesOf(root)) {
    if (other === from) continue;
    const pane = other.querySelector(".svr-flow");
    const same = pane.querySelector(`.svr-cell[data-at="${first.dataset.at}"]`);
    if (same) pane.scrollTop += same.getBoundingClientRect().top - pane.getBoundingClientRect().top;
  }
  requestAnimationFrame(() => (state.scrolling = false));
}

function build(root, data) {
  const { words } = data;
  const state = { time: data.duration, duration: data.duration, playing: false };
  const bar = element("div", "svr-bar");
  const play = element("button", "svr-play", words.play);
  play.type = "button";
  const slider = element("input", "svr-time");
  Object.assign(slider, { type: "range", min: "0", max: String(data.duration), step: "any" });
  slider.setAttribute("aria-label", words.time);
  const speed = element("select", "svr-speed");
  speed.setAttribute("aria-label", words.speed);
  for (const rate of [0.25, 0.5, 1, 2]) {
    const option = element("option", "", `${rate}x`);
    option.value = String(rate);
    option.selected = rate === 1;
    speed.append(option);
  }
  const label = element("label", "svr-lock");
  const box = element("input");
  box.type = "checkbox";
  box.checked = true;
  label.append(box, document.createTextNode(` ${words.lock}`));
  bar.append(play, slider, speed, label);
  const lanes = element("div", "svr-lanes");
  lanes.append(...data.lanes.map((each) => lane(each, words)));
  root.replaceChildren(bar, lanes);
  Object.assign(state, { slider, lock: box });
  const set = (playing) => {
    state.playing = playing;
    play.textContent = playing ? words.pause : words.play;
  };
  let before = 0;
  const tick = (now) => {
    if (!state.playing || !root.isConnected) return;
    state.time = Math.min(state.duration, state.time + ((now - before) / 1000) * speed.value);
    before = now;
    draw(root, state, words);
    for (const each of lanesOf(root)) {
      const last = Array.from(each.querySelectorAll(".svr-round:not(.svr-later)")).pop();
      const flow = each.querySelector(".svr-flow");
      if (last && last.offsetTop + last.offsetHeight > flow.scrollTop + flow.clientHeight) {
        flow.scrollTop = last.offsetTop + last.offsetHeight - flow.clientHeight;
      }
    }
    if (state.time >= state.duration) set(false);
    else requestAnimationFrame(tick);
  };
  play.onclick = () => {
    set(!state.playing);
    if (!state.playing) return;
    if (state.time >= state.duration) state.time = 0;
    before = performance.now();
    requestAnimationFrame(tick);
  };
  slider.oninput = () => {
    set(false);
    state.time = Number(slider.value);
    draw(root, state, words);
  };
  for (const each of lanesOf(root)) {
    each.querySelector(".svr-flow").onscroll = () => state.playing || lock(root, state, each);
  }
  draw(root, state, words);
}

export default function ({ data, parentElement }) {
  let root = parentElement.querySelector(".svr");
  if (!root) {
    root = element("div", "svr sv-root");
    parentElement.append(root);
  }
  const key = JSON.stringify(data);
  if (root.dataset.key === key) return;
  root.dataset.key = key;
  build(root, data);
}
