// ---- The viewer: one canvas with its controls, for one run. Whatever comes from a run only ever becomes text.

const FAMILIES = [
  ["held", "held", "packets that wait for a cause"],
  ["levels", "levels", "accepted, confirmed, acknowledged, taken"],
  ["repairs", "losses and repairs", "lost copies, gaps, requests for repair and repairs"],
  ["views", "views", "bands of views; members that leave, crash or are suspected"],
  ["objects", "calls", "executions of methods by objects"],
];
const ROWS_IN_TABLE = 200;

class Viewer {
  constructor(place, run, label) {
    Object.assign(this, { place, run, witness: NONE, match: NONE, isPinned: false, listeners: [] });
    place.viewer = this;  // for whoever inspects or drives the page
    this.canvas = make("canvas", "", undefined, { tabindex: 0, role: "application", "aria-roledescription": "space-time diagram",
      "aria-label": label + ". Arrow keys move, plus and minus zoom, n and p go from event to event, Enter pins one, v goes to the next violation, Escape lets go." });
    this.scene = null;
    this.stage = make("div", "stage");
    this.tip = make("div", "tip", undefined, { role: "status" });
    this.tip.hidden = true;
    this.stage.append(this.canvas, this.tip);
    this.note = make("div", "violation");
    this.note.hidden = true;
    this.status = make("p", "status", "", { "aria-live": "polite" });
    this.place.append(this.bar(), this.note, this.stage, this.status, this.table());
    this.scene = new Scene(run, this.canvas);
    this.families = FAMILIES.filter(([family]) => this.has(family));
    for (const [family] of this.families) this.scene.shown.add(family);
    this.bar2();
    this.listen();
  }

  // Whether there is anything of a family to show.
  has(family) {
    const own = this.run.steps.filter((step) => SIGNS[step] && SIGNS[step].family === family);
    return this.run.has(...own, ...(family === "held" ? ["hold"] : family === "objects" ? ["start"] : []));
  }

  // ---- controls

  bar() {
    const bar = make("div", "bar"), { run } = this;
    if (run.witnesses.length) {
      this.jump = make("select", "", undefined, { "aria-label": "jump to a violation" });
      this.jump.append(new Option(plural(run.witnesses.length, "violation") + ", explained", NONE));
      run.witnesses.forEach((witness, at) => this.jump.append(new Option((at + 1) + ". " + witness.check + ": " + witness.text, at)));
      this.jump.addEventListener("change", () => this.choose(+this.jump.value));
      const group = make("span", "jump");
      group.append(button("‹", "previous violation", () => this.step(-1)), this.jump, button("›", "next violation", () => this.step(1)));
      bar.append(group);
    }
    this.input = make("input", "", undefined, { type: "search", placeholder: "from:alice held>5ms", "aria-label": "search",
      title: "from: to: at: (members)  seq: view: (numbers)  held> delay> (times, as 5ms)  is: (a step, as lost or held)", spellcheck: "false" });
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => { if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1); });
    this.hits = make("span", "hits", "", { "aria-live": "polite" });
    const group = make("span", "search");
    group.append(this.input, button("next", "next match", () => this.nextMatch(1)), this.hits);
    const zoom = make("span", "zoom");
    this.even = button("even spacing", "one step per event instead of true distances in time", () => this.setEven(!this.scene.isEven));
    zoom.append(button("−", "zoom out", () => this.act(() => this.scene.zoom(1 / 1.6))), button("+", "zoom in", () => this.act(() => this.scene.zoom(1.6))),
      button("all", "show everything", () => this.act(() => this.scene.fit())), this.even);
    bar.append(group, zoom);
    return bar;
  }

  // What can be shown and hidden, with the signs it has: at once a legend.
  bar2() {
    const { run, scene } = this, legend = make("div", "legend");
    const always = make("span", "key");
    for (const step of ["send", "request", "event", "deliver"]) if (run.has(step)) always.append(sign(step), SIGNS[step].label + " ");
    always.append(swatch("cause", "line"), "cause ", swatch("effect", "line"), "effect");
    legend.append(always);
    for (const [family, label, title] of this.families) {
      const toggle = button("", title, () => {
        if (scene.shown.has(family)) scene.shown.delete(family); else scene.shown.add(family);
        toggle.setAttribute("aria-pressed", scene.shown.has(family));
        this.paint();
      });
      toggle.setAttribute("aria-pressed", true);
      if (family === "held") toggle.append(swatch("early", "bar"));
      if (family === "objects") toggle.append(swatch("object", "bar"));
      const own = run.steps.filter((step) => SIGNS[step] && SIGNS[step].family === family && run.has(step));
      for (const step of own) toggle.append(sign(step), SIGNS[step].label + " ");
      if (!own.length) toggle.append(label);
      legend.append(toggle);
    }
    if (!run.hasTimes) this.even.disabled = true;
    this.showEven(scene.isEven);
    this.stage.before(legend);
  }

  table() {
    const box = make("details", "events"), summary = make("summary", "", "The events in view as a table");
    this.list = make("div", "scroll", undefined, { tabindex: 0 });
    box.append(summary, this.list);
    box.addEventListener("toggle", () => this.fillTable());
    this.tableBox = box;
    return box;
  }

  fillTable() {
    if (!this.tableBox.open) return;
    const { run, scene } = this, [first, end] = scene.span, last = Math.min(end, first + ROWS_IN_TABLE);
    const table = make("table"), head = make("tr"), body = make("tbody");
    for (const title of [run.hasTimes ? "time" : "order", "member", "what happened"]) head.append(make("th", "", title, { scope: "col" }));
    for (let at = first; at < last; at++) {
      const row = make("tr");
      row.append(make("td", "number", run.hasTimes ? duration(run.time[at], 7) : String(at + 1)), make("td", "", run.name(run.process[at])), make("td", "", run.describe(at)));
      body.append(row);
    }
    const thead = make("thead");
    thead.append(head);
    table.append(thead, body);
    const more = end > last ? [make("p", "muted", "… and " + plural(end - last, "event") + " more: zoom in to see them here.")] : [];
    this.list.replaceChildren(table, ...more);
  }

  // ---- moving about

  listen() {
    const { canvas, scene } = this, touches = new Map();
    let dragged = null, pinch = null;
    canvas.addEventListener("pointerdown", (event) => {
      const { x, y } = this.pointAt(event);
      touches.set(event.pointerId, event);
      canvas.setPointerCapture(event.pointerId);
      if (y < MAP) { this.jumpTo(x); dragged = { isMap: true }; return; }
      dragged = { x: event.clientX, y: event.clientY, moved: false };
      if (touches.size === 2) pinch = this.gap(touches);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (touches.has(event.pointerId)) touches.set(event.pointerId, event);
      if (touches.size === 2 && pinch) {
        const now = this.gap(touches);
        this.act(() => { scene.zoom(now.wide / pinch.wide, scene.positionAt(now.x)); scene.pan(pinch.x - now.x); });
        pinch = now;
        return;
      }
      if (dragged && dragged.isMap) { this.jumpTo(this.pointAt(event).x); return; }
      if (dragged) {
        const dx = dragged.x - event.clientX, dy = dragged.y - event.clientY;
        if (!dragged.moved && Math.hypot(dx, dy) < 4) return;
        this.act(() => scene.pan(dx, dy));
        dragged = { x: event.clientX, y: event.clientY, moved: true };
        return;
      }
      if (!this.isPinned) this.hover(event);
    });
    const release = (event) => {
      const wasClick = dragged && !dragged.moved && !dragged.isMap && touches.size === 1;
      touches.delete(event.pointerId);
      pinch = null;
      dragged = null;
      if (wasClick && event.type === "pointerup") this.click(event);
    };
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, release);
    canvas.addEventListener("pointerleave", () => { if (!this.isPinned && !dragged) this.leave(); });
    canvas.addEventListener("dblclick", (event) => this.act(() => scene.zoom(3, scene.positionAt(this.pointAt(event).x))));
    canvas.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      event.preventDefault();
      this.act(() => sideways ? scene.pan(event.deltaX || event.deltaY) : scene.zoom(Math.exp(-event.deltaY / 400), scene.positionAt(this.pointAt(event).x)));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  pointAt(event) {
    const frame = this.canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  gap(touches) {
    const [one, other] = [...touches.values()].map((each) => this.pointAt(each).x);
    return { x: (one + other) / 2, wide: Math.max(Math.abs(one - other), 10) };
  }

  jumpTo(x) {
    const { scene } = this, middle = (x - scene.gutter) / scene.plot * scene.length, half = (scene.camera.to - scene.camera.from) / 2;
    this.act(() => scene.look(middle - half, middle + half));
  }

  key(event) {
    const { scene } = this, act = {
      ArrowLeft: () => scene.pan(-80), ArrowRight: () => scene.pan(80), ArrowUp: () => scene.pan(0, -scene.laneHeight), ArrowDown: () => scene.pan(0, scene.laneHeight),
      "+": () => scene.zoom(1.5), "=": () => scene.zoom(1.5), "-": () => scene.zoom(1 / 1.5), "0": () => scene.fit(),
      n: () => this.select(1), p: () => this.select(-1), v: () => this.step(1), V: () => this.step(-1),
      Enter: () => { if (scene.pinned >= 0) this.pin({ copy: NONE, event: scene.pinned }); }, Escape: () => this.letGo(),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.act(act);
  }

  // Do something that moves the camera, and paint.
  act(change) {
    change();
    this.paint();
    for (const listener of this.listeners) listener(this);
  }

  paint() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.scene.paint();
      this.tellStatus();
      this.fillTable();
    });
  }

  tellStatus() {
    const { scene, run } = this, [first, end] = scene.span, count = Math.max(end - first, 0);
    const what = count === run.count ? plural(count, "event") : count.toLocaleString("en") + " of " + plural(run.count, "event") + " in view";
    const spans = scene.isEven ? "evenly spaced, in their order" + (run.hasTimes ? "" : " (this log has no times)") : duration(scene.camera.to - scene.camera.from, 3) + " from edge to edge";
    const text = what + ", " + spans + (scene.isDetailed ? "." : ": amounts sent (above each line) and delivered (below), amber what was held or lost; zoom in for arrows.");
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  setEven(isEven) {
    if (!this.run.hasTimes) return;
    this.act(() => { this.scene.setEven(isEven); this.showEven(isEven); });
    if (this.witness >= 0) this.choose(this.witness);
  }

  showEven(isEven) {
    this.scene.isEven = isEven;
    this.even.setAttribute("aria-pressed", isEven);
  }

  // ---- pointing at something

  hover(event) {
    const { x, y } = this.pointAt(event), found = y < HEAD ? null : this.scene.nearest(x, y);
    const key = found ? found.copy + "/" + found.event : "";
    if (key === this.hovered) { if (found) this.moveTip(x, y); return; }
    this.hovered = key;
    if (!found) { this.leave(); return; }
    this.point(found);
    this.moveTip(x, y);
    this.paint();
  }

  // Show the causes and effects of something, and tell what it is.
  point(found) {
    const { run, scene } = this, about = this.eventOf(found);
    scene.cone = about >= 0 ? run.cone(about) : null;
    this.tip.replaceChildren(...this.describe(found));
    this.tip.hidden = false;
  }

  eventOf({ copy, event }) {
    const { run } = this;
    if (copy < 0) return event;
    const from = run.sent[run.copyMessage[copy]];
    return from >= 0 ? from : run.receiptOf(copy);
  }

  leave() {
    this.hovered = "";
    if (!this.scene.cone && this.tip.hidden) return;
    this.scene.cone = null;
    this.tip.hidden = true;
    this.paint();
  }

  click(event) {
    const { x, y } = this.pointAt(event), found = y < HEAD ? null : this.scene.nearest(x, y, event.pointerType === "touch" ? 18 : 9);
    if (!found) { this.letGo(); return; }
    this.pin(found);
    this.moveTip(x, y);
  }

  pin(found) {
    this.isPinned = true;
    this.scene.pinned = this.eventOf(found);
    this.point(found);
    const close = button("let go", "let go of this event (Escape)", () => this.letGo());
    this.tip.append(close);
    this.tip.classList.add("is-pinned");
    this.paint();
  }

  letGo() {
    this.isPinned = false;
    this.tip.classList.remove("is-pinned");
    this.scene.pinned = NONE;
    this.scene.cone = null;
    this.tip.hidden = true;
    this.hovered = "";
    if (this.witness >= 0) this.choose(NONE);
    this.paint();
  }

  // The next or previous event, by keys.
  select(by) {
    const { run, scene } = this, [first, end] = scene.span;
    let at = scene.pinned < 0 ? (by > 0 ? first : end - 1) : scene.pinned + by;
    at = Math.max(0, Math.min(run.count - 1, at));
    if (!run.count) return;
    scene.pinned = at;
    this.isPinned = true;
    const place = scene.where(at);
    if (place < scene.camera.from || place > scene.camera.to) { const half = (scene.camera.to - scene.camera.from) / 2; scene.look(place - half, place + half); }
    this.point({ copy: NONE, event: at });
    this.moveTip(scene.x(place), scene.y(run.process[at]));
  }

  moveTip(x, y) {
    const frame = this.stage.getBoundingClientRect(), tip = this.tip;
    tip.style.left = Math.max(Math.min(x + 16, frame.width - tip.offsetWidth - 8), 8) + "px";
    const below = y + 14;
    tip.style.top = (below + tip.offsetHeight > frame.height ? Math.max(y - tip.offsetHeight - 14, 4) : below) + "px";
  }

  describe(found) {
    const { run } = this, m = found.copy >= 0 ? run.copyMessage[found.copy] : run.message[found.event];
    if (m < 0 || run.step[found.event] === run.code.event) return [make("b", "", run.name(run.process[found.event])), make("div", "", run.describe(found.event)), make("code", "", this.when(found.event))];
    const parts = [make("b", "", run.titleOf(m))], from = run.sent[m];
    if (from >= 0) parts.push(make("div", "", "sent at " + this.when(from) + " to " + run.receivers(m) + (run.n[from] > 1 ? ", with " + plural(run.n[from], "message") : "")));
    const copies = found.copy >= 0 ? [found.copy] : [...run.copiesOf(m)].slice(0, 6);
    for (const c of copies) {
      if (run.copyProcess[c] === run.src[m] && run.delivered[c] < 0) continue;
      parts.push(make("div", "", this.fate(c)));
    }
    const causes = from >= 0 ? this.directCauses(from) : [];
    if (causes.length) {
      const list = make("ul");
      for (const cause of causes.slice(0, 6)) list.append(make("li", "", run.titleOf(run.message[cause])));
      parts.push(make("div", "", "caused by"), list);
    } else if (from >= 0) parts.push(make("div", "", "caused by nothing that is here"));
    return parts;
  }

  when(at) { return this.run.hasTimes ? duration(this.run.time[at], 6) : "event " + (at + 1); }

  // What became of a copy, in one sentence.
  fate(c) {
    const { run } = this, at = run.name(run.copyProcess[c]), delay = run.delayOf(c), held = run.heldFor(c);
    if (run.delivered[c] < 0) return at + ": " + (run.held[c] >= 0 ? "put aside, and never delivered" : "arrived, and was not delivered");
    const waited = held > 0 ? ", held for " + duration(held) : "";
    const took = run.hasTimes && Number.isFinite(delay) ? " after " + duration(delay) : "";
    return "delivered at " + at + took + waited + ", position " + run.pos[run.delivered[c]];
  }

  // The last messages that a send knew of each member, without those that another of them already knew.
  directCauses(from) {
    const { run } = this, { offsets, order } = run.lanes, reach = run.past(from), latest = [];
    for (let p = 0; p < reach.length; p++) {
      for (let k = reach[p]; k >= 0; k--) {
        const at = order[offsets[p] + k];
        if (at !== from && run.isSend[run.step[at]] && run.message[at] >= 0) { latest.push(at); break; }
      }
    }
    if (latest.length > 40) return latest.slice(0, 6);
    const { place } = run, pasts = latest.map((at) => run.past(at));
    return latest.filter((at, one) => !pasts.some((past, other) => other !== one && past[run.process[at]] >= place[at]));
  }

  // ---- violations

  step(by) {
    const count = this.run.witnesses.length;
    if (count) this.choose((this.witness + by + (this.witness < 0 && by < 0 ? 1 : 0) + count) % count);
  }

  choose(number) {
    const witness = this.run.witnesses[number] || null, { scene } = this;
    this.witness = witness ? number : NONE;
    if (this.jump) this.jump.value = String(this.witness);
    scene.chosen = witness;
    scene.cone = null;
    this.isPinned = false;
    scene.pinned = NONE;
    this.tip.hidden = true;
    this.note.hidden = !witness;
    if (witness) {
      const counted = make("b", "", (number + 1) + " of " + this.run.witnesses.length + " · " + witness.check);
      const events = [...witness.chain, witness.late, witness.early].filter((at) => at !== null && at >= 0);
      this.note.replaceChildren(counted, " " + witness.text + (witness.promised ? "" : " (not promised by this order)") + (events.length ? "" : " It is not among the events that are here."));
      this.note.classList.toggle("is-promised", witness.promised);
      scene.show(events);
    }
    this.act(() => {});
  }

  // ---- search

  search() {
    const { run, scene } = this, asked = parseSearch(this.input.value, run);
    this.match = NONE;
    this.input.setAttribute("aria-invalid", Boolean(asked.error));
    if (asked.error || !asked.tests.length) {
      scene.found = null;
      this.hits.textContent = asked.error || "";
    } else {
      scene.found = search(run, asked.tests);
      this.hits.textContent = plural(scene.found.found.length, "event");
    }
    this.paint();
  }

  nextMatch(by) {
    const found = this.scene.found && this.scene.found.found;
    if (!found || !found.length) return;
    this.match = this.match < 0 ? (by > 0 ? 0 : found.length - 1) : (this.match + by + found.length) % found.length;
    const at = found[this.match], { scene, run } = this;
    this.hits.textContent = (this.match + 1).toLocaleString("en") + " of " + plural(found.length, "event");
    const c = run.copy[at], from = run.message[at] >= 0 ? run.sent[run.message[at]] : NONE;
    scene.show([at, from, c >= 0 && run.copyMessage[c] >= 0 ? run.delivered[c] : NONE].filter((event) => event >= 0));
    scene.pinned = at;
    this.isPinned = true;
    scene.paint();
    this.point({ copy: NONE, event: at });
    scene.cone = null;
    this.moveTip(scene.x(scene.where(at)), scene.y(run.process[at]));
    this.act(() => {});
  }
}

// ---- elements

function make(name, kind, text, attributes = {}) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function button(label, title, act) {
  const element = make("button", "", label, { type: "button", title });
  if (label.length === 1) element.setAttribute("aria-label", title);
  element.addEventListener("click", act);
  return element;
}

function sign(step) {
  const canvas = make("canvas", "sign", undefined, { "aria-hidden": "true" });
  canvas.dataset.step = step;
  paintSign(canvas);
  return canvas;
}

function paintSign(canvas) {
  const scale = devicePixelRatio || 1, context = canvas.getContext("2d");
  canvas.width = canvas.height = 16 * scale;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const y = { take: 0, confirm: 17, acknowledge: 17, lost: 18, gap: 18, nack: 18, repair: 18, deliver: 11 }[canvas.dataset.step] ?? 8;
  SIGNS[canvas.dataset.step].paint(context, 8, y, palette(document.body), 1);
}

function swatch(colour, kind) { return make("span", "swatch " + kind + " of-" + colour); }

// ---- all viewers of the page

const VIEWERS = new Map();
const READY = [];
const UNOPENED = new Map();  // places that are filled when one comes near them, and how

async function openViewers() {
  const started = performance.now();
  for (const place of document.querySelectorAll(".viewer")) {
    try {
      const run = await readRun(place.dataset.trace);
      const viewer = new Viewer(place, run, "What happened in " + run.title);
      VIEWERS.set(place.dataset.trace, viewer);
      viewer.scene.paint();
      viewer.tellStatus();
      if (run.witnesses.length) viewer.choose(firstToShow(run.witnesses));
    } catch (error) {
      place.append(make("p", "muted", "The diagram cannot be shown here: " + error.message + ". It needs a browser of 2023 or later."));
    }
  }
  for (const each of READY) each();
  document.documentElement.dataset.drawn = Math.round(performance.now() - started);
  document.documentElement.dataset.opened = Math.round(performance.now());
}

// A promise that was broken, if there is one, and of those one that can be explained by a chain of causes.
function firstToShow(witnesses) {
  const rank = ({ promised, chain }) => 2 * promised + (chain.length > 1);
  return witnesses.reduce((best, each, at) => rank(each) > rank(witnesses[best]) ? at : best, 0);
}

function openOnce(place) {
  const open = UNOPENED.get(place);
  if (UNOPENED.delete(place)) open(place);
}

// At once, and not with the next frame: what is printed has none. Of paper one sees all, so all is opened.
function paintAll(isPrinting) {
  document.documentElement.classList.toggle("printing", isPrinting);
  if (isPrinting) for (const place of UNOPENED.keys()) openOnce(place);
  for (const place of document.querySelectorAll(".viewer")) place.viewer?.scene?.paint();
  document.querySelectorAll("canvas.sign").forEach(paintSign);
}

addEventListener("beforeprint", () => paintAll(true));
addEventListener("afterprint", () => paintAll(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.querySelectorAll("canvas.sign").forEach(paintSign));
