// ---- Search: words such as `from:alice to:bob held>5ms`, each of which a copy of a message has to satisfy.

const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 };
const ASKED = ["from", "to", "at", "seq", "view", "is", "held", "delay"];

// What is asked for, as a list of tests of an event; or an error in words.
function parseSearch(text, run) {
  const tests = [];
  for (const word of text.trim().split(/\s+/).filter(Boolean)) {
    const match = /^([a-z]+)(:|>=|<=|>|<|=)(.*)$/i.exec(word);
    if (!match) { tests.push(wordTest(word.toLowerCase(), run)); continue; }
    const [, key, relation, value] = [match[0], match[1].toLowerCase(), match[2], match[3]];
    if (!ASKED.includes(key)) return { error: "there is no “" + key + "”; there are " + ASKED.join(", ") };
    if (value === "") return { error: "“" + word + "” lacks what it asks for" };
    const test = keyTest(key, relation, value, run);
    if (typeof test === "string") return { error: test };
    tests.push(test);
  }
  return { tests };
}

function keyTest(key, relation, value, run) {
  if (key === "held" || key === "delay") {
    const limit = asTime(value);
    if (limit === null || relation === ":") return "“" + key + "” is compared with a time, as in " + key + ">5ms";
    return copyTest(run, (c) => compare(key === "held" ? run.heldFor(c) : run.delayOf(c), relation, limit));
  }
  if (key === "seq" || key === "view") {
    const number = Number(value);
    if (!Number.isFinite(number)) return "“" + key + "” is compared with a number";
    const test = relation === ":" ? "=" : relation;
    return key === "seq" ? (at) => run.message[at] >= 0 && compare(run.seq[run.message[at]], test, number)
      : (at) => compare(run.view[at], test, number);
  }
  if (key === "is") return stepTest(value.toLowerCase(), run);
  const wanted = membersLike(value, run);
  if (!wanted.size) return "no member’s name has “" + value + "” in it";
  if (key === "at") return (at) => wanted.has(run.process[at]);
  if (key === "from") return (at) => run.message[at] >= 0 && wanted.has(run.src[run.message[at]]);
  return (at) => {  // to whom: a copy that came there, or a send that names it
    const m = run.message[at];
    if (m < 0) return false;
    if (run.sent[m] !== at) return wanted.has(run.process[at]);
    for (const c of run.copiesOf(m)) if (wanted.has(run.copyProcess[c])) return true;
    return false;
  };
}

function copyTest(run, test) { return (at) => run.copy[at] >= 0 && run.copyMessage[run.copy[at]] >= 0 && test(run.copy[at]); }

function stepTest(value, run) {
  const codes = run.steps.map((step) => [step, LEVELS[step], SIGNS[step] && SIGNS[step].label].some((name) => name && name.startsWith(value)));
  return codes.some(Boolean) ? (at) => codes[run.step[at]] : "there is no step “" + value + "”; there are " + run.steps.join(", ");
}

function wordTest(word, run) {
  const members = membersLike(word, run);
  const texts = new Set(run.texts.map((text, at) => text.toLowerCase().includes(word) ? at : NONE).filter((at) => at >= 0));
  return (at) => members.has(run.process[at]) || texts.has(run.text[at]) ||
    (run.message[at] >= 0 && members.has(run.src[run.message[at]]));
}

function membersLike(value, run) {
  const low = value.toLowerCase(), same = [], alike = [];
  run.names.forEach((name, at) => {
    if (name.toLowerCase() === low) same.push(at);
    else if (name.toLowerCase().includes(low)) alike.push(at);
  });
  return new Set(same.length ? same : alike);
}

function asTime(value) {
  const match = /^([\d.]+)(ns|us|µs|ms|s)?$/.exec(value);
  return match && Number.isFinite(+match[1]) ? +match[1] * UNITS[match[2] || "ms"] : null;
}

function compare(value, relation, limit) {
  if (relation === ">") return value > limit;
  if (relation === "<") return value < limit;
  if (relation === ">=") return value >= limit;
  if (relation === "<=") return value <= limit;
  return value === limit;
}

// Which events satisfy all tests: a mark for each, and their numbers.
function search(run, tests) {
  const marks = new Uint8Array(run.count), found = [];
  for (let at = 0; at < run.count; at++) {
    if (tests.every((test) => test(at))) { marks[at] = 1; found.push(at); }
  }
  return { marks, found };
}
