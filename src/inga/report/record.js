// ---- The events of a run as columns of numbers, and what follows from them: copies, cones of causes and effects.

const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };
const NONE = -1;
const LEVELS = { receive: "arrived", hold: "held", accept: "accepted", causal: "ordered", confirm: "confirmed",
  acknowledge: "acknowledged", deliver: "delivered", take: "taken", start: "delivered" };

async function readRun(number) {
  const about = JSON.parse(document.getElementById("data-" + number).textContent);
  const packed = document.getElementById("columns-" + number).textContent;
  return new Run(about, await inflate(fromBase64(packed)));
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

class Run {
  constructor(about, buffer) {
    Object.assign(this, { names: about.names, texts: about.texts, refs: about.refs, sets: about.sets,
      steps: about.steps, witnesses: about.witnesses, hasTimes: about.hasTimes, title: about.title });
    this.unit = about.bundled ? "packet" : "message";
    this.code = Object.fromEntries(about.steps.map((step, code) => [step, code]));
    this.readColumns(about, buffer);
    this.count = this.process.length;
    this.time = this.time || new Float64Array(0);
    this.numberCopies();
    this.receipt = this.chooseReceipt(about.receipt);
    this.duration = this.count ? this.time[this.count - 1] : 0;
  }

  readColumns(about, buffer) {
    let offset = 0;
    const raw = {};
    for (const [name, kind, how, length] of about.columns) {
      raw[name] = [new KINDS[kind](buffer, offset, length), how];
      offset += Math.ceil(length * KINDS[kind].BYTES_PER_ELEMENT / 8) * 8;
    }
    for (const [name, [values, how]] of Object.entries(raw)) {
      if (how === "one more") this[name] = lowered(values);
    }
    this.time = summed(raw.time[0]);
    this.pos = summedBy(raw.pos[0], this.process, this.names.length, about.firstPos);
  }

  // What became of each copy: for each level the event at which it was reached.
  numberCopies() {
    const { step, message, copy, count } = this;
    let copies = 0;
    const messages = this.src.length;
    this.frequency = new Int32Array(this.steps.length);
    for (let at = 0; at < count; at++) {
      if (copy[at] >= copies) copies = copy[at] + 1;
      this.frequency[step[at]]++;
    }
    this.copies = copies;
    this.sent = new Int32Array(messages).fill(NONE);
    this.copyMessage = new Int32Array(copies).fill(NONE);
    this.copyProcess = new Int32Array(copies).fill(NONE);
    this.firstCopy = new Int32Array(messages).fill(NONE);
    this.nextCopy = new Int32Array(copies).fill(NONE);
    for (const level of new Set(Object.values(LEVELS))) this[level] = new Int32Array(copies).fill(NONE);
    const levels = this.steps.map((name) => this[LEVELS[name]] || null);
    const isSend = this.steps.map((name) => name === "send" || name === "request" || name === "response");
    for (let at = 0; at < count; at++) {
      const m = message[at];
      if (m < 0) continue;
      if (isSend[step[at]]) { if (this.sent[m] < 0) this.sent[m] = at; continue; }
      const c = copy[at], level = levels[step[at]];
      if (!level) continue;
      if (this.copyMessage[c] < 0) {
        this.copyMessage[c] = m;
        this.copyProcess[c] = this.process[at];
        this.nextCopy[c] = this.firstCopy[m];
        this.firstCopy[m] = c;
      }
      if (level[c] < 0) level[c] = at;
    }
    this.isSend = isSend;
  }

  // Whether any of these steps occurred.
  has(...steps) { return steps.some((step) => this.frequency[this.code[step]] > 0); }

  // The step that makes a message a cause; if such rows are not here, the next best.
  chooseReceipt(wanted) {
    const names = { take: "taken", deliver: "delivered", accept: "accepted" };
    const found = [wanted, "take", "deliver", "accept"].find((step) => this.has(step)) || "deliver";
    return this[names[found]];
  }

  // When a copy came in: the first that is known of it.
  arrival(c) {
    for (const level of [this.arrived, this.held, this.accepted, this.ordered, this.delivered, this.taken]) {
      if (level[c] >= 0) return level[c];
    }
    return NONE;
  }

  // When a copy that was held went on.
  released(c) {
    const candidates = [this.accepted[c], this.delivered[c]].filter((event) => event >= 0);
    return candidates.length ? Math.min(...candidates) : NONE;
  }

  receiptOf(c) { return this.receipt[c] >= 0 ? this.receipt[c] : this.delivered[c]; }

  heldFor(c) {
    const from = this.held[c], to = this.released(c);
    return from >= 0 && to >= 0 ? this.time[to] - this.time[from] : 0;
  }

  delayOf(c) {
    const from = this.sent[this.copyMessage[c]], to = this.delivered[c];
    return from >= 0 && to >= 0 ? this.time[to] - this.time[from] : NaN;
  }

  // Events of each process, in order, and the place of each event among those of its process.
  get lanes() {
    if (this._lanes) return this._lanes;
    const n = this.names.length, offsets = new Int32Array(n + 1), order = new Int32Array(this.count);
    const place = new Int32Array(this.count), fill = new Int32Array(n);
    for (let at = 0; at < this.count; at++) offsets[this.process[at] + 1]++;
    for (let p = 0; p < n; p++) offsets[p + 1] += offsets[p];
    for (let at = 0; at < this.count; at++) {
      const p = this.process[at];
      place[at] = fill[p];
      order[offsets[p] + fill[p]++] = at;
    }
    return (this._lanes = { offsets, order, place });
  }

  // The event at another process that an event is the receipt of.
  causeOf(at) {
    if (this.cause[at] >= 0) return this.cause[at];
    const c = this.copy[at];
    return c >= 0 && this.copyMessage[c] >= 0 && this.receiptOf(c) === at ? this.sent[this.message[at]] : NONE;
  }

  // The events at other processes that are receipts of an event.
  effectsOf(at) {
    if (this.step[at] === this.code.event) return this.heard.get(at) || [];
    const found = [];
    if (!this.isSend[this.step[at]] || this.message[at] < 0) return found;
    for (let c = this.firstCopy[this.message[at]]; c >= 0; c = this.nextCopy[c]) {
      const there = this.receiptOf(c);
      if (there >= 0 && there !== at) found.push(there);
    }
    return found;
  }

  // Of imported events: by whom each was heard of.
  get heard() {
    if (this._heard) return this._heard;
    this._heard = new Map();
    for (let at = 0; at < this.count; at++) {
      const from = this.cause[at];
      if (from < 0) continue;
      if (this._heard.has(from)) this._heard.get(from).push(at); else this._heard.set(from, [at]);
    }
    return this._heard;
  }

  // How far the past of an event reaches at each process: the place of the last event that precedes it.
  past(event) {
    const { offsets, order, place } = this.lanes, n = this.names.length;
    const reach = new Int32Array(n).fill(NONE), done = new Int32Array(n).fill(NONE);
    reach[this.process[event]] = place[event];
    const todo = [this.process[event]];
    while (todo.length) {
      const p = todo.pop();
      for (let k = done[p] + 1; k <= reach[p]; k++) {
        const from = this.causeOf(order[offsets[p] + k]);
        if (from < 0) continue;
        const q = this.process[from];
        if (place[from] > reach[q]) { reach[q] = place[from]; todo.push(q); }
      }
      done[p] = Math.max(done[p], reach[p]);
    }
    return reach;
  }

  // The same for what an event precedes: the place of the first event after it.
  future(event) {
    const { offsets, order, place } = this.lanes, n = this.names.length;
    const reach = new Int32Array(n).fill(0x7fffffff), done = new Int32Array(n);
    for (let p = 0; p < n; p++) done[p] = offsets[p + 1] - offsets[p];
    reach[this.process[event]] = place[event];
    const todo = [this.process[event]];
    while (todo.length) {
      const p = todo.pop(), from = reach[p], until = done[p];
      done[p] = Math.min(done[p], from);
      for (let k = from; k < until; k++) {
        for (const there of this.effectsOf(order[offsets[p] + k])) {
          const q = this.process[there];
          if (place[there] < reach[q]) { reach[q] = place[there]; todo.push(q); }
        }
      }
    }
    return reach;
  }

  cone(event) {
    return { event, past: this.past(event), future: this.future(event), place: this.lanes.place };
  }

  // The first event at or after a time.
  at(time) {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  name(process) { return isolate(this.names[process] ?? "?"); }
  titleOf(m) { return this.unit + " " + this.seq[m] + " of " + this.name(this.src[m]); }

  receivers(m) {
    const set = this.sets[this.dst[m]];
    if (!set) return "all others";
    const shown = set.slice(0, 12).map((process) => this.name(process));
    return shown.length ? shown.join(", ") + (set.length > 12 ? " and " + (set.length - 12) + " more" : "") : "nobody";
  }

  // An event in words, without the member it happened at.
  describe(at) {
    const step = this.steps[this.step[at]], m = this.message[at], peer = this.peer[at];
    const text = this.texts[this.text[at]];
    const other = peer >= 0 ? this.name(peer) : "";
    if (step === "event") return text || "event";
    if (step === "view") return "view " + this.view[at] + " begins" + (this.refs[this.ref[at]] ? " (" + isolate(this.named(this.refs[this.ref[at]])) + ")" : "");
    if (step === "crash") return other ? "goes on without " + other : "crashed";
    const words = { hold: "put aside", take: "taken", deliver: "delivered", send: "sent", receive: "arrived",
      accept: "accepted", confirm: "confirmed", acknowledge: "acknowledged", gap: "gap noticed, of " + other,
      nack: "asked " + other + " for a repair", repair: "sent again to " + other, lost: "lost on the way from " + other,
      gave_up: "given up", window_closed: "may not send", window_opened: "may send again", duplicate: "came twice",
      join: other + " joins", leave: other + " leaves", suspect: other + " is not heard any more", flush: "the view closes" };
    const about = m >= 0 ? this.titleOf(m) + ": " : "";
    return about + (words[step] || step) + (text && ["request", "start", "commit", "abort", "response", "undo"].includes(step) ? " " + isolate(text) : "");
  }

  // Text that names processes by numbers, as views do: with their names.
  named(text) { return text.replace(/\d+/g, (number) => this.names[number] ?? number); }
}

function lowered(values) {
  let wide = values instanceof Float64Array;
  if (values instanceof Uint32Array) wide = values.some((value) => value > 0x7fffffff);
  const found = wide ? new Float64Array(values.length) : new Int32Array(values.length);
  for (let at = 0; at < values.length; at++) found[at] = values[at] - 1;
  return found;
}

function summed(values) {
  const found = new Float64Array(values.length);
  let sum = 0;
  for (let at = 0; at < values.length; at++) found[at] = sum += values[at];
  return found;
}

function summedBy(values, group, groups, first) {
  const found = new Float64Array(values.length), sums = new Float64Array(groups).fill(first);
  for (let at = 0; at < values.length; at++) found[at] = sums[group[at]] += values[at];
  return found;
}

// ---- words

function isolate(name) { return "\u2068" + name + "\u2069"; }

function duration(nanoseconds, digits = 4) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(nanoseconds) >= size) return +(nanoseconds / size).toPrecision(digits) + " " + unit;
  }
  return Math.round(nanoseconds) + " ns";
}

function plural(count, word) { return count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s"); }
