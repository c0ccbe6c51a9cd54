// The page of `inga play`. The server plays schedules with the real stacks; here they are only shown, stepped through and changed.

const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);
const told = JSON.parse(at("examples").textContent);
const token = new URLSearchParams(location.search).get("token");
let game = null, step = 0, asked = 0;

async function play(schedule, order, keep = false) {
  const number = ++asked;
  let found;
  try {
    const answer = await fetch("/play?token=" + encodeURIComponent(token), {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ schedule, order }) });
    found = await answer.json();
  } catch {
    found = { error: "the server does not answer: was `inga play` ended?" };
  }
  if (number !== asked) return;  // something newer was asked meanwhile
  if (found.error) { tell(found.error, true); return; }
  const before = game ? step / Math.max(game.moments.length, 1) : 1;
  game = found;
  step = keep ? Math.round(before * game.moments.length) : game.moments.length;
  at("schedule").value = game.schedule;
  at("order").value = game.order;
  at("rule").textContent = "The rule of " + game.order + ": " + game.rule;
  tell(game.wrong.length ? game.wrong.join("; ") + "." : "Nothing is delivered before its cause, and everything is delivered.", game.wrong.length > 0);
  drawBoard();
  show();
}

function tell(text, isWrong) {
  at("verdict").textContent = text;
  at("verdict").className = "told " + (isWrong ? "is-wrong" : "is-right");
}

// ---- the picture, with a handle on each move

function drawBoard() {
  const parsed = new DOMParser().parseFromString(game.svg, "image/svg+xml").documentElement;
  const svg = document.importNode(parsed, true);
  svg.querySelector("style")?.remove();
  set(svg, { role: "group", "aria-label": "The schedule: each move is a button" });  // within an image nobody would find them
  at("stage").replaceChildren(svg);
  for (const moment of game.moments) if (moment.move !== null) svg.append(handle(svg, moment));
  const height = svg.viewBox.baseVal.height;
  svg.append(draw("rect", { class: "future", id: "future", y: 0, height }), draw("line", { class: "now", id: "now", y1: 8, y2: height - 4 }));
}

function handle(svg, moment) {
  const spot = draw("circle", { class: "handle", cx: moment.x, cy: game.levels[moment.site], r: 15, tabindex: 0, role: "button",
    "aria-label": moment.text + ". Left and right arrow keys move it earlier and later." });
  spot.dataset.move = moment.move;
  const title = draw("title", {});
  title.textContent = moment.text + " (drag it earlier or later)";
  spot.append(title);
  let mark = null;
  const columnAt = (event) => (event.clientX - svg.getBoundingClientRect().left) * svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
  spot.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    spot.setPointerCapture(event.pointerId);
    mark = draw("line", { class: "drop", y1: 8, y2: svg.viewBox.baseVal.height - 4, x1: moment.x, x2: moment.x });
    svg.append(mark);
  });
  spot.addEventListener("pointermove", (event) => {
    if (!mark) return;
    const x = columnAt(event);
    mark.setAttribute("x1", x);
    mark.setAttribute("x2", x);
    spot.setAttribute("cx", x);
  });
  spot.addEventListener("pointerup", (event) => {
    if (!mark) return;
    const x = columnAt(event);
    mark.remove();
    mark = null;
    if (Math.abs(x - moment.x) > 12) move(moment.move, x); else spot.setAttribute("cx", moment.x);
  });
  spot.addEventListener("pointercancel", () => { mark?.remove(); mark = null; spot.setAttribute("cx", moment.x); });
  spot.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const words = [...game.words], to = moment.move + by;
    if (to < 0 || to >= words.length) return;
    words.splice(to, 0, ...words.splice(moment.move, 1));
    play(words.join(" "), game.order, true).then(() => at("stage").querySelector(`[data-move="${to}"]`)?.focus());
  });
  return spot;
}

// A move goes to where it was dropped; all others stay in their order.
function move(number, x) {
  const word = game.words[number];
  const others = game.moments.filter((each) => each.move !== null && each.move !== number);
  const before = others.filter((each) => each.x < x).length;
  const words = game.words.filter((_, each) => each !== number);
  words.splice(before, 0, word);
  play(words.join(" "), game.order, true);
}

// ---- step by step

function show() {
  const count = game.moments.length, moment = game.moments[step - 1], svg = at("stage").querySelector("svg");
  at("step").max = count;
  at("step").value = step;
  at("back").disabled = step === 0;
  at("on").disabled = step === count;
  at("told").textContent = moment ? step + " of " + count + ": " + moment.text : "Nothing has happened yet.";
  const edge = moment ? moment.x + 24 : 70, width = svg.viewBox.baseVal.width;
  const isEnd = step === count;
  set(at("future"), { x: edge, width: isEnd ? 0 : Math.max(width - edge, 0) });
  set(at("now"), { x1: edge, x2: edge, visibility: isEnd ? "hidden" : "visible" });
  at("members").replaceChildren(...game.names.map((name, site) => {
    const row = document.createElement("tr");
    if (moment && moment.site === site && !isEnd) row.className = "is-now";
    const clock = moment ? moment.states[site] : "";
    for (const text of [name, clock || "–", listed(moment && moment.held[site]), listed(moment && moment.got[site])]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      row.append(cell);
    }
    return row;
  }));
}

function listed(numbers) { return numbers && numbers.length ? numbers.join(", ") : "–"; }

function go(to) { step = Math.max(0, Math.min(game.moments.length, to)); show(); }

at("back").addEventListener("click", () => go(step - 1));
at("on").addEventListener("click", () => go(step + 1));
at("step").addEventListener("input", () => go(+at("step").value));
at("order").addEventListener("change", () => play(at("schedule").value, at("order").value, true));
at("schedule").addEventListener("change", () => { at("example").value = ""; at("why").textContent = ""; play(at("schedule").value, at("order").value); });
at("example").addEventListener("change", () => choose(told.examples[at("example").value]));

function choose(example) {
  if (!example) return;
  at("why").textContent = example.why.replace(/<[^>]*>/g, "");
  play(example.schedule, example.order);
}

function draw(name, attributes) { return set(document.createElementNS(SVG, name), attributes); }
function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

if (told.start.schedule) play(told.start.schedule, told.start.order);
else { at("example").value = "0"; choose({ ...told.examples[0], order: told.start.order || told.examples[0].order }); }
