"use strict";
// The space-time diagram: one SVG per trace, drawn from the JSON beside it. Names only ever become text.

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LANE = 64, TOP = 34, LEFT = 150, STEP = 26, NAME_MAX = 18;

  for (const place of document.querySelectorAll(".viewer")) {
    const data = JSON.parse(document.getElementById("data-" + place.dataset.trace).textContent);
    new Viewer(place, data);
  }

  function Viewer(place, data) {
    const names = data.names;
    const events = data.events.map(([process, pos, time, step, src, seq, deps, dst, note], at) =>
      ({ process, pos, time, step, src, seq, deps, dst, note, at }));
    const byPlace = new Map(events.map((event) => [event.process + ":" + event.pos, event]));
    const messages = gather(events);
    const lanes = names.map((_, at) => at).filter((at) =>
      names.length <= 24 || events.some((event) => event.process === at));
    const laneOf = new Map(lanes.map((process, at) => [process, at]));
    let byTime = false, zoom = 1, shift = 0, chosen = null;

    // ---- the frame

    const bar = make("div", "bar"), note = make("div", "violation"), stage = make("div", "stage");
    const tip = make("div", "tip");
    const svg = draw("svg", { tabindex: 0, role: "img", "aria-label": "space-time diagram" });
    const height = TOP + lanes.length * LANE;
    svg.setAttribute("height", height);
    note.hidden = tip.hidden = true;
    stage.append(svg, tip);
    place.append(bar, note, stage);

    const jump = document.createElement("select");
    jump.setAttribute("aria-label", "jump to a violation");
    if (data.witnesses.length) {
      jump.append(new Option("jump to a violation …", ""));
      data.witnesses.forEach((witness, at) => jump.append(new Option(witness.check + ": " + witness.text, at)));
      jump.addEventListener("change", () => jump.value === "" ? choose(null) : choose(data.witnesses[jump.value]));
      bar.append(jump);
    }
    bar.append(button("−", "zoom out", () => zoomBy(1 / 1.5)), button("+", "zoom in", () => zoomBy(1.5)),
      button("fit", "show everything", fit));
    const scale = button("by time", "true distances in time instead of one step per event", () => {
      byTime = !byTime;
      scale.setAttribute("aria-pressed", byTime);
      fit();
    });
    scale.setAttribute("aria-pressed", false);
    if (data.timed) bar.append(scale);
    bar.append(make("span", "space"), legend());

    // ---- what is drawn once

    const layers = Object.fromEntries(["ticks", "lanes", "chains", "messages", "others", "names"].map((name) => {
      const group = draw("g", { class: name });
      svg.append(group);
      return [name, group];
    }));
    const laneLines = lanes.map((process, at) => {
      const y = laneY(process);
      const line = draw("line", { class: "lane", y1: y, y2: y, x1: LEFT });
      const plate = draw("rect", { class: "plate", x: 0, y: TOP + at * LANE, width: LEFT - 8, height: LANE });
      const label = draw("text", { x: LEFT - 16, y: y + 4, "text-anchor": "end" });
      label.textContent = isolate(shorten(names[process]));
      label.append(titled(names[process]));
      layers.lanes.append(line);
      layers.names.append(plate, label);
      return line;
    });
    for (const message of messages.values()) drawMessage(message);
    const others = events.filter((event) => !["send", "deliver", "take", "receive"].includes(event.step) &&
      laneOf.has(event.process)).map((event) => {
      const mark = draw("rect", { class: "other", width: 6, height: 6, y: laneY(event.process) - 3 });
      mark.append(titled((event.note || event.step) + " at " + names[event.process]));
      layers.others.append(mark);
      return [event, mark];
    });
    const heard = links(events).filter(([from, to]) => laneOf.has(from.process) && laneOf.has(to.process))
      .map(([from, to]) => {
        const line = draw("line", { class: "heard", y1: laneY(from.process), y2: laneY(to.process) });
        layers.others.prepend(line);
        return [from, to, line];
      });
    const chain = draw("polyline", { class: "chain" });
    layers.chains.append(chain);

    // ---- moving about

    let dragged = null;
    svg.addEventListener("pointerdown", (event) => {
      dragged = { x: event.clientX, shift };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!dragged) return;
      shift = dragged.shift + event.clientX - dragged.x;
      arrange();
    });
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { dragged = null; });
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        shift -= event.deltaX;
        arrange();
      } else {
        zoomBy(Math.exp(-event.deltaY / 400), event.clientX - svg.getBoundingClientRect().left);
      }
    }, { passive: false });
    svg.addEventListener("keydown", (event) => {
      const act = {
        ArrowLeft: () => { shift += 80; arrange(); }, ArrowRight: () => { shift -= 80; arrange(); },
        "+": () => zoomBy(1.5), "-": () => zoomBy(1 / 1.5), "0": fit, Escape: () => { jump.value = ""; choose(null); },
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    new ResizeObserver(() => arrange()).observe(stage);
    fit();
    const first = data.witnesses.findIndex((witness) => placesOf(witness).length > 1);
    if (first >= 0) { jump.value = String(first); choose(data.witnesses[first]); }

    // ---- coordinates

    function width() { return Math.max(stage.clientWidth, 400); }
    function extent() { return byTime ? (events[events.length - 1].time - events[0].time) || 1 : events.length * STEP; }
    function laneY(process) { return TOP + (laneOf.get(process) + 0.5) * LANE; }
    function raw(event) { return byTime ? event.time - events[0].time : (event.at + 0.5) * STEP; }
    function x(event) { return LEFT + shift + raw(event) * zoom; }

    function fit() {
      zoom = Math.min((width() - LEFT - 30) / extent(), byTime ? Infinity : 1.6);
      if (!byTime) zoom = Math.max(zoom, 0.5);
      shift = 10;
      arrange();
    }

    function zoomBy(factor, around) {
      const middle = (around === undefined ? (LEFT + width()) / 2 : Math.max(around, LEFT)) - LEFT;
      shift = middle - (middle - shift) * factor;
      zoom *= factor;
      arrange();
    }

    function arrange() {
      const right = width();
      svg.setAttribute("viewBox", `0 0 ${right} ${height}`);
      for (const line of laneLines) line.setAttribute("x2", right);
      for (const message of messages.values()) placeMessage(message);
      for (const [event, mark] of others) mark.setAttribute("x", x(event) - 3);
      for (const [from, to, line] of heard) set(line, { x1: x(from), x2: x(to) });
      placeChain();
      placeTicks(right);
    }

    function placeTicks(right) {
      layers.ticks.replaceChildren();
      const count = Math.max(Math.floor((right - LEFT) / 140), 1);
      let last = -Infinity;
      for (const event of events) {
        const at = x(event);
        if (at < LEFT + 20 || at > right - 20 || at - last < (right - LEFT) / count) continue;
        last = at;
        const label = draw("text", { class: "axis", x: at, y: 16, "text-anchor": "middle" });
        label.textContent = data.timed ? duration(event.time - events[0].time) : String(event.at + 1);
        layers.ticks.append(draw("line", { class: "tick", x1: at, x2: at, y1: 22, y2: height }), label);
      }
    }

    // ---- messages

    function drawMessage(message) {
      const group = draw("g", { class: "message", "data-message": message.src + ":" + message.seq });
      message.group = group;
      message.parts = message.copies.map((copy) => {
        const path = draw("line", { class: "path" }), hit = draw("line", { class: "hit" });
        const wait = copy.arrived && copy.delivered ? draw("line", { class: "wait" }) : null;
        const mark = copy.delivered ? draw("path", { class: "deliver" }) : null;
        const take = copy.taken ? draw("circle", { class: "take", r: 3 }) : null;
        const whole = draw("g", { class: "copy" });
        whole.append(...[wait, path, hit, mark, take].filter(Boolean));
        group.append(whole);
        return { copy, whole, path, hit, wait, mark, take };
      });
      if (message.sent) {
        message.dot = draw("circle", { class: "send", r: 4.5 });
        group.append(message.dot);
      }
      group.addEventListener("pointerenter", (event) => hover(message, event));
      group.addEventListener("pointermove", (event) => moveTip(event));
      group.addEventListener("pointerleave", leave);
      layers.messages.append(group);
    }

    function placeMessage(message) {
      const sent = message.sent && laneOf.has(message.src) ? { x: x(message.sent), y: laneY(message.src) } : null;
      if (message.dot) set(message.dot, { cx: sent.x, cy: sent.y });
      for (const { copy, path, hit, wait, mark, take } of message.parts) {
        const y = laneY(copy.process);
        const end = copy.arrived || copy.delivered || copy.taken;
        const to = { x: x(end), y };
        // What was sent outside of what is shown comes in from the side of its sender.
        const away = Math.sign((laneOf.get(message.src) ?? 0) - laneOf.get(copy.process)) || 1;
        const from = sent || { x: to.x - 22, y: y + away * 20 };
        for (const line of [path, hit]) set(line, { x1: from.x, y1: from.y, x2: to.x, y2: to.y });
        if (wait) set(wait, { x1: to.x, x2: x(copy.delivered), y1: y, y2: y });
        if (mark) {
          const at = x(copy.delivered), up = from.y > y ? 1 : -1;
          mark.setAttribute("d", `M${at - 5} ${y + up * 7}L${at + 5} ${y + up * 7}L${at} ${y}Z`);
        }
        if (take) set(take, { cx: x(copy.taken), cy: y });
      }
    }

    // ---- pointing at one

    function hover(message, event) {
      if (dragged) return;
      const past = pastOf(message), causes = direct(past.latest);
      svg.classList.add("is-hovering");
      message.group.classList.add("is-hovered");
      for (const other of messages.values()) {
        other.group.classList.toggle("is-past", isPast(other, message));
        other.group.classList.toggle("is-cause", causes.some(([src, seq]) => other.src === src && other.seq === seq));
      }
      tip.replaceChildren(...describe(message, causes));
      tip.hidden = false;
      moveTip(event);
    }

    function leave() {
      svg.classList.remove("is-hovering");
      for (const other of messages.values()) other.group.classList.remove("is-hovered", "is-past", "is-cause");
      tip.hidden = true;
    }

    function moveTip(event) {
      const frame = stage.getBoundingClientRect();
      const left = event.clientX - frame.left + 16, top = event.clientY - frame.top + 14;
      tip.style.left = Math.max(Math.min(left, frame.width - tip.offsetWidth - 8), 8) + "px";
      tip.style.top = (top + tip.offsetHeight > frame.height ? Math.max(top - tip.offsetHeight - 28, 4) : top) + "px";
    }

    function pastOf(message) {
      const latest = (message.deps || []).map((seq, src) => [src, seq]).filter(([, seq]) => seq > 0);
      return { latest };
    }

    function isPast(one, of) { return Boolean(of.deps) && of.deps[one.src] >= one.seq; }

    function direct(latest) {
      // A cause is direct unless another cause already has it in its past.
      return latest.filter(([src, seq]) => !latest.some(([other, number]) => {
        const known = messages.get(other + ":" + number);
        return other !== src && known && known.deps && known.deps[src] >= seq;
      }));
    }

    function describe(message, causes) {
      const head = make("b", "", "message " + message.seq + " of " + isolate(names[message.src]));
      const lines = [];
      if (message.sent) lines.push("sent " + (data.timed ? "at " + duration(message.sent.time - events[0].time) + " " : "") +
        "to " + receivers(message.sent));
      for (const copy of message.copies) {
        if (!copy.delivered) continue;
        const waited = copy.arrived ? ", held for " + duration(copy.delivered.time - copy.arrived.time) : "";
        lines.push("delivered at " + isolate(names[copy.process]) + ", position " + copy.delivered.pos + waited);
      }
      const parts = [head, ...lines.map((line) => make("div", "", line))];
      if (message.deps) parts.push(make("code", "", "vector <" + message.deps.join(",") + ">"));
      if (causes.length) {
        const list = make("ul");
        for (const [src, seq] of causes) list.append(make("li", "", "message " + seq + " of " + isolate(names[src])));
        parts.push(make("div", "", "caused by"), list);
      } else {
        parts.push(make("div", "", message.deps ? "caused by nothing" : "causes unknown"));
      }
      return parts;
    }

    function receivers(sent) {
      if (sent.dst === null) return "all others";
      const mask = BigInt(sent.dst);
      const to = names.filter((_, at) => (mask >> BigInt(at)) & 1n).map(isolate);
      return to.length ? to.join(", ") : "nobody";
    }

    // ---- violations

    function placesOf(witness) {
      const found = witness.chain.map((step) => byPlace.get(step.process + ":" + step.pos));
      found.push(byPlace.get(witness.process + ":" + witness.other_pos), byPlace.get(witness.process + ":" + witness.pos));
      const sent = messages.get(witness.message.join(":"));
      if (sent && sent.sent) found.push(sent.sent);
      return found.filter(Boolean);
    }

    function choose(witness) {
      chosen = witness;
      for (const message of messages.values()) message.group.classList.remove("is-early", "is-late", "is-link");
      note.hidden = !witness;
      if (witness) {
        note.textContent = witness.check + ": " + witness.text;
        for (const step of witness.chain) mark([step.src, step.seq], "is-link");
        mark(witness.other, "is-early");
        mark(witness.message, "is-late");
        const places = placesOf(witness);
        if (places.length) {
          const low = Math.min(...places.map(raw)), high = Math.max(...places.map(raw));
          const room = width() - LEFT - 160;
          zoom = Math.min(room / Math.max(high - low, 1), byTime ? Infinity : 1.6);
          shift = 80 - low * zoom + Math.max(room - (high - low) * zoom, 0) / 2;
        }
      }
      arrange();
    }

    function mark(message, name) {
      const found = message && messages.get(message.join(":"));
      if (!found) return;
      found.group.classList.remove("is-link", "is-early");
      found.group.classList.add(name);
      for (const { copy, whole } of found.parts) whole.classList.toggle("is-here", copy.process === chosen.process);
      layers.messages.append(found.group);
    }

    function placeChain() {
      const steps = chosen ? chosen.chain.map((step) => byPlace.get(step.process + ":" + step.pos)).filter(Boolean) : [];
      chain.setAttribute("points", steps.map((event) => x(event) + "," + laneY(event.process)).join(" "));
    }
  }

  // ---- messages from events

  function gather(events) {
    const messages = new Map();
    for (const event of events) {
      if (event.src === null || !["send", "receive", "deliver", "take"].includes(event.step)) continue;
      const key = event.src + ":" + event.seq;
      if (!messages.has(key)) messages.set(key, { src: event.src, seq: event.seq, deps: null, sent: null, copies: [] });
      const message = messages.get(key);
      message.deps = message.deps || event.deps;
      if (event.step === "send") { message.sent = event; continue; }
      const field = { receive: "arrived", deliver: "delivered", take: "taken" }[event.step];
      let copy = message.copies.find((each) => each.process === event.process && !each[field]);
      if (!copy) message.copies.push(copy = { process: event.process, arrived: null, delivered: null, taken: null });
      copy[field] = event;
    }
    return messages;
  }

  // ---- what events of a log have heard of each other, from their clocks

  function links(events) {
    const logged = events.filter((event) => event.step === "event" && event.deps);
    const byNumber = new Map(logged.map((event) => [event.process + ":" + event.seq, event]));
    const found = [];
    for (const event of logged) {
      const before = byNumber.get(event.process + ":" + (event.seq - 1));
      const news = event.deps.map((seq, process) => [process, seq]).filter(([process, seq]) =>
        process !== event.process && seq > (before && before.deps ? before.deps[process] : 0));
      for (const [process, seq] of news) {
        // What another of these knows as well came by that one.
        const isOld = news.some(([other, number]) => {
          const known = byNumber.get(other + ":" + number);
          return other !== process && known && known.deps[process] >= seq;
        });
        const from = byNumber.get(process + ":" + seq);
        if (from && !isOld) found.push([from, event]);
      }
    }
    return found;
  }

  // ---- small tools

  function draw(name, attributes) { return set(document.createElementNS(SVG, name), attributes); }
  function set(element, attributes) {
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }
  function make(name, kind, text) {
    const element = document.createElement(name);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function button(label, title, act) {
    const element = make("button", "", label);
    element.type = "button";
    element.title = title;
    element.addEventListener("click", act);
    return element;
  }
  function titled(text) {
    const title = draw("title", {});
    title.textContent = text;
    return title;
  }
  function isolate(name) { return "\u2068" + name + "\u2069"; }
  function shorten(name) {
    const letters = Array.from(name);
    return letters.length > NAME_MAX ? letters.slice(0, NAME_MAX - 1).join("") + "…" : name;
  }
  function duration(nanoseconds) {
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
      if (Math.abs(nanoseconds) >= size) return +(nanoseconds / size).toPrecision(4) + " " + unit;
    }
    return nanoseconds + " ns";
  }
  function legend() {
    const box = make("span", "legend");
    const signs = [
      ["send", "circle", { class: "send", cx: 10, cy: 6, r: 4.5 }], ["deliver", "path", { class: "deliver", d: "M5 2L15 2L10 10Z" }],
      ["take", "circle", { class: "take", cx: 10, cy: 6, r: 3 }],
      ["held", "line", { x1: 3, x2: 17, y1: 6, y2: 6, stroke: "#98a2b3", "stroke-width": 5, "stroke-linecap": "round", opacity: 0.45 }],
      ["too early", "line", { x1: 1, x2: 19, y1: 6, y2: 6, stroke: "var(--early)", "stroke-width": 2.5 }],
      ["late", "line", { x1: 1, x2: 19, y1: 6, y2: 6, stroke: "var(--fail)", "stroke-width": 2.5 }],
      ["causal chain", "line", { x1: 3, x2: 17, y1: 6, y2: 6, stroke: "var(--cause)", "stroke-width": 6, "stroke-linecap": "round", opacity: 0.4 }],
    ];
    for (const [label, shape, attributes] of signs) {
      const item = make("span"), icon = draw("svg", { viewBox: "0 0 20 12", "aria-hidden": "true" });
      icon.append(draw(shape, attributes));
      item.append(icon, label);
      box.append(item);
    }
    return box;
  }
})();
