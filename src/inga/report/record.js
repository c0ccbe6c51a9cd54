// ---- The events of a run as columns of numbers, and what follows from them: copies, cones of causes and effects.

const KINDS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };
const NONE = -1;
const SENT = 0, CAME = 1, BAD = 2, AMOUNTS = 3;  // what is counted where events are too many to draw each
const LEVELS = { receive: "arrived", hold: "held", accept: "accepted", causal: "ordered", confirm: "confirmed",
  acknowledge: "acknowledged", deliver: "delivered", take: "taken", start: "delivered" };

async function readRun(number) {
  const about = JSON.parse(document.getElementById("data-" + number).textContent);
  const packed = document.getElementById("columns-" + number).textContent;
  return new Run(about, await inflate(fromBase64(packed), about.bytes));
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

// The bytes are written into the stream from here. As a Blob they would go to another process and come back in hundreds of
// pieces, each of which waits for its turn: seconds on a busy machine.
async function inflate(bytes, size) {
  const { writable, readable } = new DecompressionStream("deflate"), writer = writable.getWriter();
  for (const done of [writer.write(bytes), writer.close()]) done.catch(() => {});  // the reader is told as well
  const whole = new Uint8Array(size), reader = readable.getReader();
  for (let at = 0, next = await reader.read(); !next.done; next = await reader.read()) {
    whole.set(next.value, at);
    at += next.value.length;
  }
  return whole.buffer;
}

class Run {
  constructor(about, buffer) {
    Object.assign(this, { names: about.names, texts: about.texts, refs: about.refs, sets: about.sets,
      steps: about.steps, witnesses: about.witnesses, hasTimes: about.hasTimes, title: about.title });
    this.unit = about.bundled ? "packet" : "message";
    this.code = Object.fromEntries(about.steps.map((step, code) => [step, code]));
    this.isSend = about.steps.map((step) => step === "send" || step === "request" || step === "response");
    this.readColumns(about, buffer);
    this.count = this.process.length;
    this.frequency = new Int32Array(this.steps.length);
    for (let at = 0; at < this.count; at++) this.frequency[this.step[at]]++;
    this.numberCopies();
    this.receipt = this.chooseReceipt(about.receipt);
    this.duration = this.count ? this.time[this.count - 1] : 0;
  }

  // Columns that are kept as they are become views of the buffer, which costs nothing; positions are only summed if asked for.
  readColumns(about, buffer) {
    let offset = 0;
    const raw = {}, sums = {};
    for (const [name, kind, how, length, base] of about.columns) {
      const column = KINDS[kind];
      raw[name] = how === "same" ? new column(length).fill(base) : new column(buffer, offset, length);
      if (how !== "same") offset += Math.ceil(length * column.BYTES_PER_ELEMENT / 8) * 8;
      if (how === "kept" || how === "same") this[name] = raw[name]; else sums[name] = base;
    }
    this.time = summed(raw.time);
    this.seq = summedBy(raw.seq, this.src, this.names.length, sums.seq);
    this.message = numbersBy(raw.message, this.process, this.names.length);
    this._posSteps = [raw.pos, sums.pos];
  }

  // Of each event: which of its member's it is.
  get pos() { return this._pos ??= summedBy(this._posSteps[0], this.process, this.names.length, this._posSteps[1]); }

  // A copy is a message at one member. Sorted by message and member, events that are about one copy lie together, in the order
  // of time: so copies get their numbers, and of each is known at which event it reached which level.
  numberCopies() {
    const { step, message, process, isSend } = this, sorted = this.byMessage, messages = this.src.length;
    let copies = 0, m = NONE, p = NONE;
    const copy = this.copy = new Int32Array(this.count).fill(NONE);
    this.copiesFrom = new Int32Array(messages + 1);
    for (let k = 0; k < sorted.length; k++) {
      const at = sorted[k];
      if (message[at] !== m || process[at] !== p) {
        while (m < message[at]) this.copiesFrom[++m] = copies;
        p = process[at];
        copies++;
      }
      copy[at] = copies - 1;
    }
    while (m < messages) this.copiesFrom[++m] = copies;
    this.copies = copies;
    this.sent = new Int32Array(messages).fill(NONE);
    this.copyMessage = new Int32Array(copies).fill(NONE);
    this.copyProcess = new Int32Array(copies).fill(NONE);
    const none = new Int32Array(copies).fill(NONE), levels = this.steps.map(() => null);  // one for all levels that none reached
    for (const [name, level] of Object.entries(LEVELS)) {
      if (this.has(name) && (!this[level] || this[level] === none)) this[level] = none.slice();
      this[level] ??= none;
      levels[this.code[name]] = this[level];
    }
    for (let k = 0; k < sorted.length; k++) {
      const at = sorted[k], m = message[at];
      if (isSend[step[at]]) { if (this.sent[m] < 0 || at < this.sent[m]) this.sent[m] = at; continue; }
      const c = copy[at], level = levels[step[at]];
      if (!level) continue;
      this.copyMessage[c] = m;
      this.copyProcess[c] = process[at];
      if (level[c] < 0) level[c] = at;
    }
  }

  // Events that are about a message, by message, then by member, then by time: those of each member in order, dealt out.
  get byMessage() {
    const { message, count } = this, { order } = this.lanes, fill = new Int32Array(this.src.length + 1);
    for (let at = 0; at < count; at++) fill[message[at] + 1]++;
    const sorted = new Int32Array(count - fill[0]);
    fill[0] = 0;
    for (let m = 1; m < fill.length; m++) fill[m] += fill[m - 1];
    for (let k = 0; k < count; k++) {
      const at = order[k];
      if (message[at] >= 0) sorted[fill[message[at]]++] = at;
    }
    return sorted;
  }

  // The copies of a message that came somewhere.
  *copiesOf(m) {
    for (let c = this.copiesFrom[m]; c < this.copiesFrom[m + 1]; c++) if (this.copyMessage[c] >= 0) yield c;
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

  // What never went on is held for longer than any time that one may ask for.
  heldFor(c) {
    const from = this.held[c], to = this.released(c);
    return from < 0 ? 0 : to < 0 ? Infinity : this.time[to] - this.time[from];
  }

  delayOf(c) {
    const from = this.sent[this.copyMessage[c]], to = this.delivered[c];
    return from >= 0 && to >= 0 ? this.time[to] - this.time[from] : NaN;
  }

  // Events of each process, in order.
  get lanes() {
    if (this._lanes) return this._lanes;
    const n = this.names.length, offsets = new Int32Array(n + 1), order = new Int32Array(this.count);
    for (let at = 0; at < this.count; at++) offsets[this.process[at] + 1]++;
    for (let p = 0; p < n; p++) offsets[p + 1] += offsets[p];
    const fill = offsets.slice();
    for (let at = 0; at < this.count; at++) order[fill[this.process[at]]++] = at;
    return (this._lanes = { offsets, order });
  }

  // The place of each event among those of its process.
  get place() {
    if (this._place) return this._place;
    const { offsets, order } = this.lanes, place = new Int32Array(this.count);
    for (let p = 0; p < this.names.length; p++) for (let k = offsets[p]; k < offsets[p + 1]; k++) place[order[k]] = k - offsets[p];
    return (this._place = place);
  }

  // Events of each process by the amount that they add to. Between two events there are as many of a kind as between two places
  // here, which are found by halving: an amount costs the same however many events it counts.
  get tallies() {
    if (this._tallies) return this._tallies;
    const { process, step, count } = this, offsets = new Int32Array(this.names.length * AMOUNTS + 1);
    const { order } = this.lanes, kinds = Int8Array.from(this.steps, amountOf);
    for (let at = 0; at < count; at++) if (kinds[step[at]] >= 0) offsets[process[at] * AMOUNTS + kinds[step[at]] + 1]++;
    for (let at = 1; at < offsets.length; at++) offsets[at] += offsets[at - 1];
    const sorted = new Int32Array(offsets[offsets.length - 1]), fill = offsets.slice();
    for (let k = 0; k < count; k++) {
      const at = order[k], kind = kinds[step[at]];
      if (kind >= 0) sorted[fill[process[at] * AMOUNTS + kind]++] = at;
    }
    return (this._tallies = { offsets, sorted });
  }

  // How many events of a kind a process had from each bound to the next.
  tally(process, kind, bounds, found) {
    const { offsets, sorted } = this.tallies, last = offsets[process * AMOUNTS + kind + 1];
    let low = firstFrom(sorted, offsets[process * AMOUNTS + kind], last, bounds[0]);
    for (let at = 0; at + 1 < bounds.length; at++) {
      const next = firstFrom(sorted, low, last, bounds[at + 1]);
      found[at] = next - low;
      low = next;
    }
    return found;
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
    for (const c of this.copiesOf(this.message[at])) {
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
    const { place, lanes: { offsets, order } } = this, n = this.names.length;
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
    const { place, lanes: { offsets, order } } = this, n = this.names.length;
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
    return { event, past: this.past(event), future: this.future(event), place: this.place };
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
    const [count, ...told] = set, shown = told.map((process) => this.name(process));
    return count ? shown.join(", ") + (count > told.length ? " and " + (count - told.length).toLocaleString("en") + " more" : "") : "nobody";
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

// The first of some rising numbers from `low` on that is not below a bound: by doubled steps, as it mostly is near, then by halving.
function firstFrom(numbers, low, high, bound) {
  let step = 1;
  while (low + step < high && numbers[low + step] < bound) { low += step; step *= 2; }
  high = Math.min(high, low + step);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < bound) low = middle + 1; else high = middle;
  }
  return low;
}

function amountOf(step) {
  if (["send", "request", "response"].includes(step)) return SENT;
  if (["deliver", "accept", "start", "event"].includes(step)) return CAME;
  return ["hold", "lost", "gap"].includes(step) ? BAD : NONE;
}

// Numbers of messages: each as the distance from the one before it at the same process, one more where it is not less; 0 is none.
function numbersBy(values, group, groups) {
  const found = new Int32Array(values.length), last = new Int32Array(groups);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    found[at] = value ? last[group[at]] += value > 0 ? value - 1 : value : NONE;
  }
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
