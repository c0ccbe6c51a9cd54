// ---- Painting: what of a run is within the camera's span, on one canvas. Many events are drawn as amounts, few as arrows.

const DETAIL_PER_PIXEL = 0.6;  // events in view up to which each is drawn by itself: more are a black cloud
const OPENED_WHOLE = 8;  // times as many, from which on a run is opened as a whole
const LOOK_BEYOND = 3000;  // events behind the right edge whose arrows may cross what is in view
const MAP = 30, AXIS = 26, HEAD = MAP + AXIS;
const LANES_IN_VIEW = 24;
const BAR = 3;  // pixels that an amount is wide

function palette(element) {
  const style = getComputedStyle(element), colour = (name) => style.getPropertyValue("--" + name).trim();
  const names = ["ink", "muted", "line", "paper", "card", "accent", "pass", "fail", "unknown", "early", "cause", "effect",
    "unknown-soft", "fail-soft", "band", "object", "object-soft"];
  return Object.fromEntries(names.map((name) => [name.replace("-s", "S"), colour(name)]));
}

class Scene {
  constructor(run, canvas) {
    Object.assign(this, { run, canvas, context: canvas.getContext("2d"), top: 0, isEven: !run.hasTimes, shown: new Set(),
      cone: null, pinned: NONE, chosen: null, found: null, drawn: [], marked: NONE });
    this.lanes = this.lanesOf(run);
    this.laneOf = new Map(this.lanes.map((process, at) => [process, at]));
    this.camera = { from: 0, to: 1 };
    this.rare = this.rareEvents();
    this.views = this.viewSpans();
    this.calls = this.callSpans();
    this.width = Math.max(canvas.parentElement.clientWidth, 260);
    this.open();
  }

  // Members that did something; all of them where they are few.
  lanesOf(run) {
    if (run.names.length <= LANES_IN_VIEW) return run.names.map((_, at) => at);
    const seen = new Uint8Array(run.names.length);
    for (let at = 0; at < run.count; at++) seen[run.process[at]] = 1;
    return run.names.map((_, at) => at).filter((at) => seen[at]);
  }

  // ---- coordinates: positions are times, or ranks where events are evenly spaced

  where(at) { return this.isEven ? at : this.run.time[at]; }
  get length() { return this.isEven ? Math.max(this.run.count - 1, 1) : Math.max(this.run.duration, 1); }
  get plot() { return this.width - this.gutter - 12; }
  get gutter() { return this.width < 560 ? 76 : 128; }
  x(position) { return this.gutter + (position - this.camera.from) / (this.camera.to - this.camera.from) * this.plot; }
  positionAt(x) { return this.camera.from + (x - this.gutter) / this.plot * (this.camera.to - this.camera.from); }
  get laneHeight() { return this.lanes.length <= 6 ? 62 : this.lanes.length <= 12 ? 46 : this.lanes.length <= LANES_IN_VIEW ? 30 : 22; }
  get height() { return HEAD + Math.min(this.lanes.length, LANES_IN_VIEW) * this.laneHeight + 10; }
  y(process) { const lane = this.laneOf.get(process); return lane === undefined ? NONE : this.yOf(lane); }
  yOf(lane) { return HEAD + (lane + 0.5) * this.laneHeight - this.top; }
  get lanesInView() {
    const first = Math.floor(this.top / this.laneHeight);
    return Array.from({ length: Math.min(this.lanes.length - first, LANES_IN_VIEW + 1) }, (_, at) => first + at);
  }
  firstAt(position) { return this.isEven ? Math.max(0, Math.min(this.run.count, Math.ceil(position))) : this.run.at(position); }
  get span() { return [this.firstAt(this.camera.from), this.firstAt(this.camera.to + (this.isEven ? 1 : 1e-9 * this.length))]; }

  get detailMax() { return Math.max(this.plot * DETAIL_PER_PIXEL, 120); }

  // What is looked at first: all, or where there is some more than can be drawn, the beginning.
  open() {
    const { run } = this;
    if (run.count > this.detailMax && run.count <= OPENED_WHOLE * this.detailMax) this.look(this.where(0), this.where(Math.floor(this.detailMax / 3)));
    else this.fit();
  }

  fit() { const margin = this.length * 0.02; this.camera = { from: -margin, to: this.length + margin }; }

  look(from, to) {
    const least = this.isEven ? 4 : Math.max(this.length * 1e-9, 10);
    const middle = (from + to) / 2, half = Math.max((to - from) / 2, least / 2), slack = this.length * 0.05 + half * 0.5;
    let width = Math.min(half * 2, this.length * 1.1);
    let start = Math.max(-slack, Math.min(middle - width / 2, this.length + slack - width));
    this.camera = { from: start, to: start + width };
  }

  zoom(factor, around = (this.camera.from + this.camera.to) / 2) {
    this.look(around - (around - this.camera.from) / factor, around + (this.camera.to - around) / factor);
  }

  pan(pixels, down = 0) {
    const by = pixels / this.plot * (this.camera.to - this.camera.from);
    this.look(this.camera.from + by, this.camera.to + by);
    const most = Math.max(0, (this.lanes.length - LANES_IN_VIEW) * this.laneHeight);
    this.top = Math.max(0, Math.min(most, this.top + down));
  }

  // Bring some events into view, with room around them.
  show(events) {
    const places = events.filter((at) => at >= 0).map((at) => this.where(at));
    if (!places.length) return;
    const low = Math.min(...places), high = Math.max(...places);
    const around = this.length / Math.max(this.run.count, 1) * this.detailMax / 6;  // where all is one moment
    const room = high > low ? (high - low) * 0.3 : around;
    this.look(low - room, high + room);
    if (this.lanes.length > LANES_IN_VIEW) {
      const lane = this.laneOf.get(this.run.process[events.find((at) => at >= 0)]) || 0;
      this.top = 0;
      this.pan(0, (lane - LANES_IN_VIEW / 2) * this.laneHeight);
    }
  }

  setEven(isEven) {
    const [first, end] = this.span;
    const last = Math.max(first, Math.min(end, this.run.count) - 1);
    const isWhole = first === 0 && last === this.run.count - 1;
    this.isEven = isEven;
    if (isWhole || !this.run.count) this.fit(); else this.look(this.where(first), Math.max(this.where(last), this.where(first) + 1));
  }

  // ---- what is seldom, and drawn at any distance

  rareEvents() {
    const { run } = this, found = [], steps = ["crash", "gave_up", "leave", "suspect"];
    if (!run.has(...steps)) return found;
    const wanted = run.steps.map((step) => steps.includes(step));
    for (let at = 0; at < run.count && found.length < 2000; at++) if (wanted[run.step[at]]) found.push(at);
    return found;
  }

  viewSpans() {
    const { run } = this, open = new Map(), spans = [];
    if (!run.has("view")) return spans;
    for (let at = 0; at < run.count && spans.length < 20000; at++) {
      if (run.step[at] !== run.code.view) continue;
      const p = run.process[at];
      if (open.has(p)) open.get(p).end = at;
      const span = { process: p, view: run.view[at], begin: at, end: NONE };
      open.set(p, span);
      spans.push(span);
    }
    return spans;
  }

  // Executions of methods: from their start to how they ended, found by the process and the call.
  callSpans() {
    const { run } = this, { start, commit, abort, undo } = run.code, open = new Map(), spans = [];
    if (!run.has("start")) return spans;
    for (let at = 0; at < run.count; at++) {
      const step = run.step[at];
      if (step !== start && step !== commit && step !== abort && step !== undo) continue;
      const key = run.process[at] + "/" + run.ref[at];
      if (step === start) {
        const span = { process: run.process[at], begin: at, end: NONE, how: "open" };
        open.set(key, span);
        spans.push(span);
      } else if (open.has(key)) {
        Object.assign(open.get(key), { end: at, how: step === commit ? "commit" : "undone" });
        open.delete(key);
      }
    }
    return spans;
  }

  // ---- painting

  paint() {
    const box = this.canvas.parentElement.clientWidth, scale = devicePixelRatio || 1;
    this.width = Math.max(box, 260);
    if (this.canvas.width !== Math.round(this.width * scale) || this.canvas.height !== Math.round(this.height * scale)) {
      this.canvas.width = Math.round(this.width * scale);
      this.canvas.height = Math.round(this.height * scale);
      this.canvas.style.height = this.height + "px";
    }
    const context = this.context;
    this.colours = palette(this.canvas);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
    context.textBaseline = "middle";
    const [first, end] = this.span;
    this.isDetailed = end - first <= this.detailMax;
    this.drawn = [];
    context.save();
    context.beginPath();
    context.rect(this.gutter - 6, HEAD, this.width - this.gutter + 6, this.height - HEAD);
    context.clip();
    this.paintViews();
    this.paintLanes();
    this.paintTicks(true);
    this.paintCalls(first, end);
    if (this.isDetailed) this.paintDetail(first, end); else { this.paintAmounts(); this.paintConcerned(); }
    this.paintRare();
    this.paintChain();
    this.paintMarked();
    context.restore();
    this.paintNames();
    this.paintTicks(false);
    this.paintMap();
  }

  line(x1, y1, x2, y2) { this.context.moveTo(x1, y1); this.context.lineTo(x2, y2); }

  paintViews() {
    if (!this.shown.has("views") || this.views.length <= this.lanes.length) return;
    const { context, run } = this;
    for (const span of this.views) {
      const y = this.y(span.process);
      if (y < 0 || span.view % 2) continue;
      const from = this.x(this.where(span.begin)), to = span.end < 0 ? this.width : this.x(this.where(span.end));
      context.fillStyle = this.colours.band;
      context.fillRect(Math.max(from, this.gutter - 6), y - this.laneHeight / 2, Math.min(to, this.width) - Math.max(from, this.gutter - 6), this.laneHeight);
    }
    context.fillStyle = this.colours.muted;
    context.textAlign = "left";
    let last = NONE;
    for (const span of this.views) {
      if (this.laneOf.get(span.process) === undefined || span.view === last) continue;
      last = span.view;
      context.fillText("view " + run.view[span.begin], this.x(this.where(span.begin)) + 3, HEAD + 8);
    }
  }

  paintLanes() {
    const { context } = this;
    context.lineWidth = 1.2;
    context.strokeStyle = this.colours.line;
    context.beginPath();
    for (const lane of this.lanesInView) this.line(this.gutter - 6, this.yOf(lane), this.width, this.yOf(lane));
    context.stroke();
  }

  paintNames() {
    const { context } = this;
    context.fillStyle = this.colours.card;
    context.fillRect(0, HEAD, this.gutter - 6, this.height - HEAD);
    context.textAlign = "right";
    context.fillStyle = this.colours.ink;
    context.save();
    context.beginPath();
    context.rect(0, HEAD, this.gutter, this.height - HEAD);
    context.clip();
    context.direction = "ltr";
    for (const lane of this.lanesInView) context.fillText(this.shortName(this.lanes[lane]), this.gutter - 14, this.yOf(lane));
    context.restore();
  }

  // A name as it fits beside its line: measuring letters is slow, so it is done once.
  shortName(process) {
    if (this._namesFor !== this.gutter) { this._namesFor = this.gutter; this._names = new Map(); }
    if (!this._names.has(process)) this._names.set(process, shorten(this.context, this.run.names[process], this.gutter - 22));
    return this._names.get(process);
  }

  paintTicks(isGrid) {
    const { context } = this, span = this.camera.to - this.camera.from, wanted = Math.max(2, this.plot / 110);
    const step = niceStep(span / wanted, this.isEven);
    if (isGrid) { context.strokeStyle = this.colours.line; context.lineWidth = 1; context.setLineDash([2, 5]); context.beginPath(); } else {
      context.fillStyle = this.colours.muted;
      context.textAlign = "center";
    }
    for (let at = Math.ceil(Math.max(this.camera.from, 0) / step) * step; at <= Math.min(this.camera.to, this.length * 1.0001); at += step) {
      const x = this.x(at);
      if (isGrid) { if (x > this.gutter) this.line(x, HEAD, x, this.height); continue; }
      if (x < this.gutter + 12 || x > this.width - 22) continue;
      context.fillText(this.isEven ? "event " + (Math.round(at) + 1).toLocaleString("en") : axisTime(at, step), x, MAP + AXIS / 2 + 2);
    }
    if (isGrid) { context.stroke(); context.setLineDash([]); return; }
    context.textAlign = "right";
    context.fillText(this.isEven ? "order" : "time", this.gutter - 14, MAP + AXIS / 2 + 2);
  }

  // The whole run in a strip: how much happened when, what is in view, and where violations are.
  paintMap() {
    const { context, run, colours } = this, left = this.gutter, width = this.plot, bottom = MAP - 4;
    const heights = this.mapHeights(Math.max(Math.floor(width / 2), 1));
    context.fillStyle = colours.card;
    context.fillRect(0, 0, this.width, MAP);
    context.fillStyle = colours.line;
    context.fillRect(left, bottom, width, 1);
    context.fillStyle = colours.muted;
    context.globalAlpha = 0.45;
    for (let at = 0; at < heights.length; at++) context.fillRect(left + at * 2, bottom - heights[at] * (MAP - 10), 1.5, heights[at] * (MAP - 10));
    context.globalAlpha = 1;
    const share = (position) => left + Math.max(0, Math.min(1, position / this.length)) * width;
    for (const witness of run.witnesses) {
      const at = witness.late ?? witness.chain[0];
      if (at === null || at === undefined) continue;
      context.fillStyle = witness.promised ? colours.fail : colours.early;
      context.beginPath();
      context.arc(share(this.where(at)), 6, 3.5, 0, 7);
      context.fill();
    }
    const from = share(this.camera.from), to = Math.max(share(this.camera.to), from + 3);
    context.fillStyle = colours.accent;
    context.globalAlpha = 0.12;
    context.fillRect(from, 1, to - from, MAP - 3);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1;
    context.strokeRect(from + 0.5, 1.5, to - from - 1, MAP - 4);
    context.fillStyle = colours.muted;
    context.textAlign = "right";
    context.fillText("all", this.gutter - 14, MAP / 2);
  }

  mapHeights(buckets) {
    const key = buckets + ":" + this.isEven;
    if (this._map && this._map.key === key) return this._map.heights;
    const bounds = Array.from({ length: buckets + 1 }, (_, at) => at < buckets ? this.firstAt(at / buckets * this.length) : this.run.count);
    const counts = Float64Array.from({ length: buckets }, (_, at) => bounds[at + 1] - bounds[at]);
    let most = 1;
    for (const count of counts) if (count > most) most = count;
    this._map = { key, heights: counts.map((count) => Math.sqrt(count / most)) };
    return this._map.heights;
  }

  // Too many to draw each: how much each member sent and received, and how much of it was held or lost. Bars stand at multiples of
  // their width, so that they move with the diagram and do not change while it is moved.
  paintAmounts() {
    const { context, run, colours } = this, width = (this.camera.to - this.camera.from) / this.plot * BAR;
    const number = Math.floor(this.camera.from / width), bars = Math.ceil(this.plot / BAR) + 1, left = this.x(number * width);
    const bounds = Int32Array.from({ length: bars + 1 }, (_, at) => this.firstAt((number + at) * width));
    const amounts = this.lanesInView.map((lane) => [lane, [SENT, CAME, BAD].map((kind) => run.tally(this.lanes[lane], kind, bounds, new Uint32Array(bars)))]);
    let most = 1;
    for (const [, [sent, came]] of amounts) for (let at = 0; at < bars; at++) most = Math.max(most, sent[at], came[at]);
    const half = this.laneHeight * 0.42;
    for (const [kind, colour, up, alpha] of [[SENT, colours.ink, -1, 0.55], [CAME, colours.muted, 1, 0.55], [BAD, colours.early, 1, 0.9]]) {
      context.fillStyle = colour;
      context.globalAlpha = alpha;
      for (const [lane, { [kind]: counts }] of amounts) {
        const y = this.yOf(lane);
        for (let at = 0; at < bars; at++) {
          if (!counts[at]) continue;
          const tall = Math.max(1, Math.min(1, Math.sqrt(counts[at] / most)) * half);
          context.fillRect(left + at * BAR, up < 0 ? y - tall : y, BAR - 0.6, tall);
        }
      }
    }
    context.globalAlpha = 1;
  }

  // Each event by itself: arrows, what was held, and marks for what became of it.
  paintDetail(first, end) {
    const { run } = this, copies = new Set(), last = Math.min(end + LOOK_BEYOND, run.count);
    for (let at = first; at < last; at++) {
      const c = run.copy[at];
      if (at < end && run.message[at] >= 0 && run.sent[run.message[at]] === at) this.addCopies(run.message[at], copies);
      if (c < 0 || run.copyMessage[c] < 0) continue;
      if (at < end) { copies.add(c); continue; }
      const from = run.sent[run.copyMessage[c]];
      if (from >= 0 && from < end) copies.add(c);
    }
    const shades = { plain: [], faded: [], cause: [], effect: [], match: [], late: [], early: [] };
    for (const c of copies) shades[this.shade(c)].push(c);
    for (const shade of ["faded", "plain", "match", "cause", "effect", "early", "late"]) this.paintCopies(shade, shades[shade]);
    if (run.has("event")) this.paintHeard(first, end);
    this.paintMarks(first, end);
  }

  // Arrows between events of an imported log.
  paintHeard(first, end) {
    const { context, run, colours, cone } = this;
    for (let at = first; at < Math.min(end + LOOK_BEYOND, run.count); at++) {
      const from = run.cause[at];
      if (from < 0 || (at >= end && from >= end)) continue;
      const isEffect = cone && cone.place[from] >= cone.future[run.process[from]], isCause = cone && cone.place[at] <= cone.past[run.process[at]];
      const ends = [this.x(this.where(from)), this.y(run.process[from]), this.x(this.where(at)), this.y(run.process[at])];
      context.strokeStyle = context.fillStyle = isCause ? colours.cause : isEffect ? colours.effect : colours.muted;
      context.globalAlpha = isCause || isEffect ? 1 : this.isDimmed(at) ? 0.15 : 0.75;
      context.lineWidth = isCause || isEffect ? 1.9 : 1.2;
      context.beginPath();
      this.line(...ends);
      context.stroke();
      this.paintHead(...ends);
    }
    context.globalAlpha = 1;
  }

  // Among amounts, too: what the chosen violation, or the message that is pinned, is about.
  paintConcerned() {
    const { run, chosen, pinned } = this, copies = new Set();
    if (chosen) for (const at of [...chosen.chain, chosen.late, chosen.early]) if (at !== null && at >= 0 && run.copy[at] >= 0) copies.add(run.copy[at]);
    if (pinned >= 0 && run.message[pinned] >= 0) this.addCopies(run.message[pinned], copies);
    for (const c of copies) if (run.copyMessage[c] >= 0) this.paintCopies(this.shade(c), [c]);
  }

  addCopies(m, copies) {
    for (const c of this.run.copiesOf(m)) copies.add(c);
  }

  // How a copy is drawn: by the violation that is chosen, the message that is pointed at, or the search.
  shade(c) {
    const { run, cone, chosen } = this, from = run.sent[run.copyMessage[c]], to = run.receiptOf(c);
    if (chosen) {
      const here = run.copyProcess[c] === chosen.process;
      if (here && this.isAbout(c, chosen.late)) return "late";
      if (here && this.isAbout(c, chosen.early)) return "early";
      if (chosen.chain.some((at) => run.copy[at] === c)) return "cause";
      if (!cone) return "faded";
    }
    if (cone) {
      if (from === cone.event || (from >= 0 && cone.place[from] >= cone.future[run.process[from]])) return "effect";
      if (to >= 0 && cone.place[to] <= cone.past[run.process[to]]) return "cause";
      return "faded";
    }
    if (this.found) return this.isFound(c) ? "match" : "faded";
    return "plain";
  }

  // Whether the search found a copy; where it found the send alone, as `is:sent` does, it means all copies.
  isFound(c) {
    const { run } = this, { marks } = this.found, m = run.copyMessage[c], from = run.sent[m];
    const isOwn = (each) => [run.arrival(each), run.held[each], run.delivered[each], run.taken[each]].some((at) => at >= 0 && marks[at]);
    if (isOwn(c)) return true;
    return from >= 0 && Boolean(marks[from]) && ![...run.copiesOf(m)].some(isOwn);
  }

  isAbout(c, event) { return event !== null && event >= 0 && this.run.copy[event] === c; }

  paintCopies(shade, copies) {
    if (!copies.length) return;
    const { context, run, colours } = this;
    const look = { plain: [colours.muted, 0.75, 1.2], faded: [colours.muted, 0.13, 1], match: [colours.accent, 1, 1.7], cause: [colours.cause, 1, 1.9],
      effect: [colours.effect, 1, 1.9], late: [colours.fail, 1, 2.8], early: [colours.early, 1, 2.8] }[shade];
    const [colour, alpha, width] = look, heads = [];
    context.strokeStyle = context.fillStyle = colour;
    context.globalAlpha = alpha;
    context.lineWidth = width;
    context.beginPath();
    const bars = [];
    for (const c of copies) {
      const end = run.arrival(c), to = this.y(run.copyProcess[c]);
      if (end < 0 || to < 0) continue;
      const x2 = this.x(this.where(end)), from = run.sent[run.copyMessage[c]];
      let x1 = x2 - 18, y1 = to - 16;  // sent outside of what is here: it comes in from aside
      if (from >= 0 && this.y(run.process[from]) >= 0) { x1 = this.x(this.where(from)); y1 = this.y(run.process[from]); }
      if (run.held[c] >= 0 && this.shown.has("held")) bars.push(c);
      if (run.copyProcess[c] !== (from >= 0 ? run.process[from] : NONE)) {
        this.line(x1, y1, x2, to);
        if (Math.hypot(x2 - x1, to - y1) > 14) heads.push([x1, y1, x2, to]);
      }
      this.drawn.push({ copy: c, x1, y1, x2, y2: to });
    }
    context.stroke();
    if (heads.length < 3000) for (const head of heads) this.paintHead(...head);
    context.globalAlpha = shade === "faded" ? 0.25 : 1;
    for (const c of bars) this.paintHeld(c);
    context.globalAlpha = 1;
  }

  paintHead(x1, y1, x2, y2) {
    const { context } = this, angle = Math.atan2(y2 - y1, x2 - x1), size = 7;
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - size * Math.cos(angle - 0.4), y2 - size * Math.sin(angle - 0.4));
    context.lineTo(x2 - size * Math.cos(angle + 0.4), y2 - size * Math.sin(angle + 0.4));
    context.fill();
  }

  paintHeld(c) {
    const { context, run, colours } = this, y = this.y(run.copyProcess[c]), released = run.released(c);
    const from = this.x(this.where(run.held[c])), to = released >= 0 ? this.x(this.where(released)) : this.width;
    context.strokeStyle = colours.early;
    context.lineWidth = 5;
    context.lineCap = "round";
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * 0.4;
    context.beginPath();
    this.line(from, y + 6, Math.max(to, from + 1), y + 6);
    context.stroke();
    context.globalAlpha = alpha;
    context.lineCap = "butt";
  }

  // Dots and signs on the lanes.
  paintMarks(first, end) {
    const { run, context } = this;
    for (let at = first; at < end; at++) {
      const y = this.y(run.process[at]);
      if (y < 0) continue;
      const step = run.steps[run.step[at]], sign = SIGNS[step];
      if (!sign || (sign.family && !this.shown.has(sign.family))) continue;
      context.globalAlpha = this.isDimmed(at) ? 0.18 : 1;
      sign.paint(context, this.x(this.where(at)), y, this.colours, this.laneHeight < 30 ? 0.75 : 1);
    }
    context.globalAlpha = 1;
  }

  isDimmed(at) {
    const { run, cone, chosen, found } = this;
    if (cone) {
      const p = run.process[at];
      return !(at === cone.event || cone.place[at] <= cone.past[p] || cone.place[at] >= cone.future[p]);
    }
    if (chosen) return !(chosen.chain.includes(at) || at === chosen.late || at === chosen.early ||
      (run.copy[at] >= 0 && (this.isAbout(run.copy[at], chosen.late) || this.isAbout(run.copy[at], chosen.early))));
    return Boolean(found) && !found.marks[at];
  }

  paintCalls(first, end) {
    if (!this.shown.has("objects")) return;
    const { context, run, colours } = this;
    for (const span of this.calls) {
      if (span.begin >= end || (span.end >= 0 && span.end < first)) continue;
      const y = this.y(span.process);
      if (y < 0) continue;
      const from = this.x(this.where(span.begin)), to = span.end < 0 ? from + 8 : Math.max(this.x(this.where(span.end)), from + 6);
      context.fillStyle = span.how === "undone" ? colours.failSoft : colours.objectSoft;
      context.strokeStyle = span.how === "undone" ? colours.fail : colours.object;
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(from, y - 8, to - from, 16, 4);
      context.fill();
      context.stroke();
      const label = run.texts[run.text[span.begin]];
      if (!label || to - from < 26) continue;
      context.fillStyle = colours.ink;
      context.textAlign = "left";
      context.fillText(shorten(context, label, to - from - 8), from + 4, y + 0.5);
    }
  }

  paintRare() {
    const { context, colours, run } = this;
    for (const at of this.rare) {
      const y = this.y(run.process[at]);
      if (y < 0) continue;
      const sign = SIGNS[run.steps[run.step[at]]];
      if (sign) sign.paint(context, this.x(this.where(at)), y, colours, 1);
    }
  }

  // The chain of causes of the chosen violation.
  paintChain() {
    const { context, run, colours, chosen } = this;
    if (!chosen) return;
    context.strokeStyle = colours.cause;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.beginPath();
    chosen.chain.forEach((at, number) => {
      const x = this.x(this.where(at)), y = this.y(run.process[at]);
      if (number) context.lineTo(x, y); else context.moveTo(x, y);
    });
    context.stroke();
    for (const [event, colour, word] of [[chosen.early, colours.early, "this came first"], [chosen.late, colours.fail, "its cause came after it"]]) {
      if (event === null || event < 0) continue;
      const x = this.x(this.where(event)), y = this.y(run.process[event]);
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, 10, 0, 7);
      context.stroke();
      if (chosen.check !== "causal") continue;
      context.font = "600 " + context.font;
      context.textAlign = event === chosen.early ? "right" : "left";
      const at = event === chosen.early ? x - 13 : x + 13, room = event === chosen.early ? x - this.gutter : this.width - x;
      if (room > 90) {
        context.lineWidth = 4;
        context.strokeStyle = colours.card;
        context.strokeText(word, at, y + 16);
        context.fillStyle = colour;
        context.fillText(word, at, y + 16);
      }
      context.font = context.font.replace("600 ", "");
    }
  }

  // The event that is pinned, selected by keys, or where two runs differ.
  paintMarked() {
    const { context, run, colours } = this;
    for (const [event, colour] of [[this.pinned, colours.accent], [this.marked, colours.fail]]) {
      if (event < 0) continue;
      const x = this.x(this.where(event)), y = this.y(run.process[event]);
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.setLineDash([4, 3]);
      context.beginPath();
      if (event === this.marked) this.line(x, HEAD, x, this.height);
      context.stroke();
      context.setLineDash([]);
      context.beginPath();
      context.arc(x, y, 9, 0, 7);
      context.stroke();
    }
  }

  // ---- what is at a place on the canvas

  nearest(x, y, reach = 9) {
    let best = null, least = reach;
    for (const each of this.drawn) {
      const away = distance(x, y, each);
      if (away < least) { least = away; best = { copy: each.copy, event: NONE }; }
    }
    const [first, end] = this.span;
    if (!this.isDetailed) return best;
    for (let at = first; at < end; at++) {
      const lane = this.y(this.run.process[at]);
      if (Math.abs(lane - y) > reach) continue;
      const away = Math.hypot(this.x(this.where(at)) - x, lane - y) - 3;
      if (away < least) { least = away; best = { copy: NONE, event: at }; }
    }
    return best;
  }
}

function distance(x, y, { x1, y1, x2, y2 }) {
  const dx = x2 - x1, dy = y2 - y1, squared = dx * dx + dy * dy || 1;
  const along = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / squared));
  return Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
}

function niceStep(least, isWhole) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= least);
  return isWhole ? Math.max(1, Math.round(step)) : step;
}

// A time on the axis, as exactly as the distance of the ticks asks for.
function axisTime(at, step) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (step >= size || (at >= size && step >= size / 1000)) return (at / size).toFixed(Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9))) + " " + unit;
  }
  return at >= 1e6 ? (at / 1e6).toFixed(6) + " ms" : Math.round(at) + " ns";
}

function shorten(context, text, room) {
  if (text.length < 200 && context.measureText(text).width <= room) return text;
  const letters = Array.from(text.slice(0, 200));
  while (letters.length && context.measureText(letters.join("") + "…").width > room) letters.pop();
  return letters.join("") + "…";
}
