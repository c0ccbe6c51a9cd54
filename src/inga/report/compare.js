// ---- Two runs side by side: one camera for both, and the first place where they differ.

const COMPARED = ["send", "deliver", "request", "start", "event", "crash", "view"];

// What each member did, one thing after the other, as texts that are equal if the same happened.
function deeds(run) {
  const codes = new Set(COMPARED.map((step) => run.code[step])), { offsets, order } = run.lanes;
  return new Map(run.names.map((name, p) => {
    const done = [];
    for (let k = offsets[p]; k < offsets[p + 1]; k++) {
      const at = order[k];
      if (codes.has(run.step[at])) done.push(at);
    }
    return [name, done];
  }));
}

function deed(run, at) {
  const m = run.message[at];
  return run.steps[run.step[at]] + " " + (m >= 0 ? run.names[run.src[m]] + " " + run.seq[m] : run.peer[at] >= 0 ? run.names[run.peer[at]] : "") + " " + (run.step[at] === run.code.view ? run.view[at] : run.texts[run.text[at]] || "");
}

// The earliest event from which on a member of one run did something else than the member of the same name in the other. One that has
// no namesake differs from the first thing that it did; null where no name is in both.
function firstDifference(one, other) {
  const ours = deeds(one), theirs = deeds(other);
  if (!one.names.some((name) => theirs.has(name))) return null;
  let best = null, same = 0;
  for (const name of new Set([...one.names, ...other.names])) {
    const mine = ours.get(name) || [], its = theirs.get(name) || [];
    let k = 0;
    while (k < mine.length && k < its.length && deed(one, mine[k]) === deed(other, its[k])) k++;
    same += k;
    if (k === mine.length && k === its.length) continue;
    const here = k < mine.length ? mine[k] : NONE, there = k < its.length ? its[k] : NONE;
    const time = Math.min(here >= 0 ? one.time[here] : Infinity, there >= 0 ? other.time[there] : Infinity);
    if (!best || time < best.time) best = { name, here, there, time, number: k + 1 };
  }
  return { best, same };
}

function openCompare(place) {
  const viewers = place.dataset.traces.split(" ").map((number) => VIEWERS.get(number)).filter(Boolean);
  if (viewers.length < 2) { place.append(make("p", "muted", "There are no two runs to compare.")); return; }
  const choices = [0, 1].map((which) => {
    const select = make("select", "", undefined, { "aria-label": which ? "the other run" : "one run" });
    viewers.forEach((viewer, at) => select.append(new Option(viewer.run.title, at)));
    select.value = String(which);
    select.addEventListener("change", compareChosen);
    return select;
  });
  const bar = make("div", "bar"), told = make("p", "difference", "", { "aria-live": "polite" }), stages = make("div", "pair");
  const again = button("first difference", "look at where the two runs first differ", () => look());
  bar.append(choices[0], "and", choices[1], again);
  place.append(bar, told, stages);
  let pair = [], difference = null;

  function compareChosen() {
    const runs = choices.map((choice) => viewers[+choice.value].run), isEven = runs.some((run) => !run.hasTimes);
    stages.replaceChildren();
    pair = runs.map((run, which) => {
      const box = make("div", "viewer is-plain");
      stages.append(make("h3", "", run.title), box);
      const viewer = new Viewer(box, run, "Run " + (which + 1) + " of two side by side");
      viewer.even.disabled = isEven;  // one cannot be spaced by times, so neither is: they keep step
      viewer.showEven(isEven);
      viewer.scene.fit();
      return viewer;
    });
    pair.forEach((viewer, which) => viewer.listeners.push((moved) => follow(moved, pair[1 - which])));
    const found = firstDifference(...runs), best = difference = found && found.best;
    told.textContent = best ? sentence(best, runs, found.same) : found ? "Both runs are the same, in what is here: all members sent and delivered the same, in the same order." :
      "No member of one run has a namesake in the other, so there is nothing to compare.";
    again.disabled = !best;
    pair.forEach((viewer, which) => { viewer.scene.marked = best ? (which ? best.there : best.here) : NONE; });
    look();
  }

  function sentence({ name, here, there, number }, runs, same) {
    const did = (run, at) => at >= 0 ? run.describe(at) : run.names.includes(name) ? "nothing more" : "it is not there";
    return "The runs first differ at " + isolate(name) + ", in thing number " + number + " that it did. " + isolate(runs[0].title) + ": " + did(runs[0], here) +
      ". " + isolate(runs[1].title) + ": " + did(runs[1], there) + ". Before that, member by member, " + plural(same, "thing") + " came the same way.";
  }

  function look() {
    if (difference) {
      const [one, other] = pair, at = (viewer, event) => event >= 0 ? viewer.scene.where(event) : NONE;
      const place = Math.max(at(one, difference.here), at(other, difference.there));
      const half = Math.min(one.scene.length, other.scene.length) * 0.04;
      for (const viewer of pair) viewer.scene.look(place - half, place + half);
    }
    for (const viewer of pair) viewer.paint();
  }

  function follow(moved, other) {
    other.showEven(moved.scene.isEven);
    other.scene.camera = { ...moved.scene.camera };
    other.paint();
  }

  compareChosen();
}

READY.push(() => {
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) openOnce(entry.target);
  }, { rootMargin: "200px" });
  for (const place of document.querySelectorAll(".compare")) {
    UNOPENED.set(place, openCompare);
    seen.observe(place);
  }
});

openViewers();
