"""Objects in the simulator: calls, transactions, aborts, and what they leave in a trace."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from inga.layers.shape import Faults
from inga.model.errors import RemoteError, UsageError
from inga.model.view import View
from inga.obg import Abort, InvocationAborted, ObjectClass, method
from inga.objects import failures, links
from inga.objects.hosted import REMEMBERED_MAX
from inga.objects.layer import HELD_MAX
from inga.objects.links import Links
from inga.objects.window import weight
from inga.recipes import OVER, Options, find
from inga.sim.hunt import calls, explain, try_seed
from inga.sim.simulator import Sim
from inga.sim.site import Site
from inga.sim.trials import simulate_trial
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.trace.memory import MemoryTrace
from inga.trace.reader import read_manifest, rows
from inga.trial.calls import CONFLICTS, CallResult
from inga.trial.trial import Trial

from ..objects.classes import Account, Counter, Teller

NAMES = ("alice", "bob", "cathy")
OBJECTS = {"hits": Counter, "a": Account, "b": (Account, ["bob"]), "teller": (Teller, ["cathy"])}


def group(over: str = "reliable", seed: int = 1, objects: Any = None, **options: Any) -> Sim:
    sim = Sim(
        *NAMES,
        order="object",
        seed=seed,
        objects=objects or OBJECTS,
        options=Options(protocol={"over": over}),
        **options,
    )
    return sim


def deposited(over: str = "reliable") -> Sim:
    sim = group(over)
    sim["alice"].call("b", "deposit", 50)
    sim.run()
    return sim


@pytest.mark.parametrize("over", OVER)
def test_a_replicated_object_is_the_same_everywhere(over: str) -> None:
    sim = group(over)
    for name in NAMES:
        for amount in (1, 10):
            sim[name].call("hits", "inc", amount)
    one, every = sim["bob"].call("hits", "show"), sim["cathy"].call("hits", "show", answers="all")
    sim.run()
    assert [site.state("hits") for site in sim.sites] == [33, 33, 33]
    assert one.done and one.error is None
    assert len(every.result) == 3 and len(set(every.result)) == 1
    sim.check()


def test_the_same_seed_is_the_same_run() -> None:
    trial = Trial(order="object", members=3, messages=8, loss=0.1, seed=5, objects=2)
    one, other = simulate_trial(trial), simulate_trial(trial)
    one.cpu_seconds = other.cpu_seconds = 0.0
    assert one == other


@pytest.mark.parametrize("over", OVER)
def test_nested_calls_commit_together(over: str) -> None:
    sim = deposited(over)
    moved = sim["alice"].call("teller", "transfer", "b", "a", 20)
    sim.run()
    assert moved.result == [30, 20]
    assert [site.state("a") for site in sim.sites] == [20, 20, 20] and sim["bob"].state("b") == 30
    assert all(site.stack.chain.begun for site in sim.sites), (
        "who looks for what stands still sees calls that move"
    )


def test_what_fails_reaches_the_caller_with_its_words_and_leaves_nothing() -> None:
    sim = deposited()
    roots = {
        "insufficient funds": sim["cathy"].call("b", "withdraw", 1000),
        "has no method 'steal'": sim["cathy"].call("b", "steal"),
        "takes 3 positional arguments but 4 were given": sim["cathy"].call("b", "withdraw", 1, 2),
        "unsupported operand": sim["cathy"].call("a", "deposit", "much"),
    }
    with pytest.raises(UsageError, match="no object 'c'"):
        sim["cathy"].call("c", "deposit", 1)
    nested = sim["cathy"].call("teller", "transfer", "a", "b", 1)
    sim.run()
    for words, root in roots.items():
        assert isinstance(root.error, RemoteError) and words in str(root.error), words
    assert isinstance(nested.error, InvocationAborted) and "insufficient funds" in str(nested.error)
    assert sim["bob"].state("b") == 50 and [site.state("a") for site in sim.sites] == [0, 0, 0]


@pytest.mark.parametrize("over", OVER)
def test_a_transaction_that_aborts_takes_everything_back(over: str) -> None:
    sim = deposited(over)

    async def body(ctx: Any) -> None:
        await ctx.call("hits", "inc", 5)
        await ctx.call("a", "deposit", 7)
        handle = ctx.start("b", "withdraw", 1)
        await handle
        raise Abort("changed my mind")

    root = sim["alice"].begin(body)
    sim.run()
    assert isinstance(root.error, Abort)
    assert [site.state("hits") for site in sim.sites] == [0, 0, 0]
    assert [site.state("a") for site in sim.sites] == [0, 0, 0] and sim["bob"].state("b") == 50


class Page(ObjectClass):
    """Doubles what it is given."""

    @method
    async def double(self, ctx: Any, text: bytes) -> bytes:
        return 2 * text


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize(("size", "what"), [(100, ""), (50_000, "double"), (100_000, "arguments")])
def test_a_call_that_does_not_fit_a_datagram(over: str, size: int, what: str) -> None:
    """What is above `reliable` is cut; a datagram is not."""
    sim = group(over, objects={"page": (Page, ["bob"])})
    if over == "datagrams" and what == "arguments":
        for ask in (sim["alice"].call, sim["alice"].oneway):
            with pytest.raises(UsageError, match="bytes of arguments or result do not fit a datagram"):
                ask("page", "double", b"x" * size)
        return
    root = sim["alice"].call("page", "double", b"x" * size)
    sim.run()
    if over == "reliable" or not what:
        assert root.result == 2 * size * b"x"
    else:
        assert "do not fit a datagram" in str(root.error)
        assert what in str(root.error)


def test_all_and_any_and_oneway() -> None:
    sim = deposited()
    found: list[Any] = []

    async def body(ctx: Any) -> None:
        ctx.oneway(["a", "b"], "balance")
        found.append(await ctx.all(ctx.start("b", "balance"), ctx.start("hits", "show")))
        found.append(await ctx.any(ctx.start("b", "withdraw", 1), ctx.start("a", "withdraw", 1)))

    root = sim["alice"].begin(body)
    sim.run()
    assert root.error is None, "of two alternatives one has the money"
    assert found == [[50, 0], None] and sim["bob"].state("b") == 49


class Lock(ObjectClass):
    """Enters, waits a little, and enters another."""

    def initial(self) -> int:
        return 0

    @method
    async def enter(self, ctx: Any, other: str = "") -> None:
        ctx.effect(lambda s: s + 1)
        await ctx.pause(0.05)
        if other:
            await ctx.call(other, "enter")


def test_two_that_lock_each_other_end_with_one_retry() -> None:
    traces = [MemoryTrace(process, 4) for process in range(2)]
    locks = {"x": (Lock, ["alice"]), "y": (Lock, ["bob"])}
    sim = Sim("alice", "bob", order="object", seed=3, objects=locks, record=False)
    for site in sim.sites:
        order = site.objects
        for place in order.roster.at[site.index]:
            order.rows.traces[place] = traces[site.index]
    one, other = sim["alice"].call("x", "enter", "y"), sim["bob"].call("y", "enter", "x")
    sim.run()
    (failed,) = (root for root in (one, other) if root.error is not None)
    assert isinstance(failed.error, InvocationAborted) and failed.error.reason == "deadlock"
    site, words = (sim["alice"], ("x", "y")) if failed is one else (sim["bob"], ("y", "x"))
    again = site.begin(lambda ctx: ctx.call(words[0], "enter", words[1]), retry_of=failed)
    sim.run()
    assert again.done and again.error is None
    assert (sim["alice"].state("x"), sim["bob"].state("y")) == (2, 2)
    steps = [row.step for trace in traces for row in trace.rows]
    assert steps.count("abort") >= 1 and steps.count("commit") >= 4
    assert any("deadlock" in (row.note or "") for trace in traces for row in trace.rows)


def test_errors_of_usage() -> None:
    with pytest.raises(
        UsageError, match=r"objects is an option of order object, total, .*; order 'vector' has none"
    ):
        Sim(*NAMES, order="causal", objects=OBJECTS)["alice"].call("hits", "inc")
    with pytest.raises(UsageError, match="no copy of an object 'b' at this member"):
        group()["alice"].state("b")


# Trials


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("order", ["object", "total"])
@pytest.mark.parametrize("seed", range(3))
def test_trials_end_as_they_should(order: str, over: str, seed: int) -> None:
    own = (("over", over),)
    result = simulate_trial(
        Trial(order=order, members=4, messages=8, loss=0.1, dup=0.05, seed=seed, option=own, objects=2)
    )
    assert isinstance(result, CallResult)
    assert not result.violations, result.witnesses
    assert result.sent == 32 and result.delivered == result.expected > 128
    assert 0 < result.aborted < result.committed


@pytest.mark.parametrize("wrong", CONFLICTS)
def test_a_wrong_declaration_shows(wrong: tuple[str, str]) -> None:
    """In total order too: members take for compatible what is not, but there everything conflicts."""
    trial = Trial(order="object", members=4, messages=12, loss=0.1, seed=2, objects=1, misdeclare=wrong)
    result = simulate_trial(trial)
    assert result.violations
    assert any(all(op in witness for op in wrong) for witness in result.witnesses)
    assert not simulate_trial(replace(trial, order="total")).violations, (
        "where everything conflicts nobody asks"
    )


@pytest.mark.hunt
@pytest.mark.parametrize("over", OVER)
def test_many_trials(over: str) -> None:
    for seed in range(300):
        trial = Trial(
            order="object",
            members=2 + seed % 5,
            messages=10,
            loss=0.1 * (seed % 4),
            seed=seed,
            option=(("over", over),),
            objects=1 + seed % 3,
        )
        assert not simulate_trial(trial).violations, seed


# Traces


def test_a_trace_has_a_process_for_every_copy(tmp_path: Path) -> None:
    simulate_trial(Trial(order="object", members=3, messages=6, seed=1, objects=2), tmp_path / "run")
    manifest = read_manifest(tmp_path / "run")
    copies = [f"{name}/{tally}" for name in NAMES for tally in ("tally1", "tally2")]
    assert manifest.processes == [*NAMES, *copies]
    assert manifest.guarantees == ["object", "views"] and manifest.complete
    pairs = [["add", "look"], ["look", "put"], ["look", "take"], ["put", "put"]]
    assert manifest.conflicts == dict.fromkeys(copies, pairs)
    clients = [row for process in range(3) for row in rows(tmp_path / "run", process)]
    served = [row for process in range(3, 9) for row in rows(tmp_path / "run", process)]
    assert {"request", "commit", "abort"} <= {row.step for row in clients}
    assert {"start", "commit", "response", "undo"} <= {row.step for row in served}
    asked = {(row.src, row.seq): row for row in clients if row.step == "request"}
    began = [row for row in served if row.step == "start"]
    assert began and all(asked[row.src, row.seq].op == row.op for row in began)
    assert all(row.ref for row in began)
    assert all(asked[row.src, row.seq].deps == row.deps for row in began)


def test_a_hunt_calls_objects_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--objects 2" in calls("object", 7).command()
    assert try_seed("object", 7) is None
    monkeypatch.setattr(
        "inga.sim.hunt.calls", lambda order, seed: replace(calls(order, seed), misdeclare=("put", "put"))
    )
    failed = next(seed for seed in range(1, 40, 2) if try_seed("object", seed) is not None)
    command = explain("object", failed, "why").command
    assert command.startswith("inga sim --order object") and "--misdeclare put/put" in command


# Other orders, while the group runs

CHANGES = ("total", "object", "fifo", "vector", "none", "co", "sco")


def changed(first: str, seed: int, **protocol: Any) -> Sim:
    """Messages to some, to oneself and to all, before and while the order changes again and again."""
    rng = Random(f"{first} {seed}")
    sim = Sim(
        *NAMES,
        order=first,
        seed=seed,
        options=Options(echo=rng.choice((None, None, False, True)), protocol=protocol),
        faults=Faults(rng.choice((0, 0.2)), 0.0, 0.0, 0.001, 0.01),
        objects={"hits": Counter},
        record=False,
    )
    wanted = []
    for _ in range(3):
        for _ in range(rng.randint(1, 4)):
            to = rng.choice((None, "alice", "bob", ["alice", "cathy"], list(NAMES)))
            sim[rng.choice(NAMES)].send(b"x" * rng.choice((1, 3000)), to)
        sim.run(until=sim.now + rng.choice((0, 0.002, 0.02, 5)))
        wanted.append(rng.choice([order for order in CHANGES if order != sim.sites[0].stack.view.recipe]))
        sim[rng.choice(NAMES)].use(wanted[-1])
        sim.run()
        assert {site.stack.view.recipe for site in sim.sites} == {wanted[-1]}, (seed, wanted)
    sim[NAMES[seed % 3]].send(b"last")
    sim.run()
    assert sim.outcomes == [None] * 3
    assert all(site.stack.writable for site in sim.sites)
    assert sim.oracle.taken == sim.oracle.expected, seed
    assert not sim.oracle.violations["integrity"], (seed, sim.oracle.witnesses)
    return sim


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("first", ["total", "object"])
def test_the_order_changes_after_messages_to_some(first: str, over: str) -> None:
    for seed in range(20):
        changed(first, seed, over=over)


@pytest.mark.hunt
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("first", ["total", "object"])
def test_the_order_changes_many_times(first: str, over: str) -> None:
    for seed in range(1000, 1500):
        changed(first, seed, over=over)


@pytest.mark.parametrize("over", OVER)
def test_calls_under_way_when_the_order_changes_have_come_to_nothing(over: str) -> None:
    """Bob's method takes longer than a change waits: its caller is told, and nothing of it goes on."""
    sim = group(over, objects={"lock": (Slow, ["bob"])}, record=False)
    done = sim["alice"].call("lock", "enter", 0.0)
    sim.run()
    waits = sim["alice"].call("lock", "enter", 100.0)
    sim.run(until=sim.now + 1.0)
    queued = sim["cathy"].call("lock", "enter", 0.0)
    sim.run(until=sim.now + 1.0)
    orders = [site.objects for site in sim.sites]
    sim["cathy"].use("fifo")
    sim.run(until=50.0)
    assert sim.outcomes == [None]
    assert done.error is None and done.result == 1
    for root in (waits, queued):
        assert root.done and isinstance(root.error, InvocationAborted)
        assert "the view of the group changes" in str(root.error)
    assert all(order.host.idle for order in orders)
    sim["bob"].send(b"on")
    sim.run()
    assert sim["alice"].texts == sim["cathy"].texts == ["on"]
    assert not any(site.stack.rejected for site in sim.sites)


@pytest.mark.parametrize("over", OVER)
def test_calls_under_way_when_a_change_of_the_order_is_refused_go_on(over: str, monkeypatch: Any) -> None:
    """Nothing changes, so nobody is told that a call has to end, however long it takes."""
    sim = group(over, objects={"lock": (Slow, ["bob"])}, record=False)
    before = sim["alice"].call("lock", "enter", 10.0)
    queued = sim["cathy"].call("lock", "enter", 0.0)
    sim.run(until=1.0)

    def build(recipe: str) -> list[Layer]:
        raise UsageError(f"no order {recipe!r}")

    session: Any = sim["bob"].stack.layer("session")
    monkeypatch.setattr(session.changes, "_build", build)
    sim["cathy"].use("fifo")
    sim.run(until=1.5)
    assert sim.outcomes == ["bob: no order 'fifo'"]
    after = sim["bob"].call("lock", "enter", 0.0)
    sim.run(until=20.0)
    assert [root.error for root in (before, queued, after)] == [None] * 3
    assert sorted(root.result for root in (before, queued, after)) == [1, 2, 3]
    assert sim["bob"].state("lock") == 3
    assert all(site.stack.writable and site.objects.host.idle for site in sim.sites)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("change", ["join", "leave", "crash"])
def test_a_change_of_the_view_waits_for_calls_and_objects_keep_their_state(over: str, change: str) -> None:
    """A call that ends soon ends in its view; what it has done is there in the next one."""
    options = Options(protocol={"over": over}, detect=0.5)
    objects = {"lock": (Slow, ["alice", "bob"])}
    sim = Sim(*NAMES, "dave", order="object", objects=objects, options=options, record=False)
    first = sim["alice"].call("lock", "enter", 0.0)
    sim.run(until=1.0)
    under_way = sim["bob"].call("lock", "enter", 0.6)
    sim.run(until=1.1)
    match change:
        case "join":
            sim.join("erin")
        case "leave":
            sim["dave"].leave()
        case "crash":
            sim["dave"].crash()
    sim.run(until=3.0)
    assert sim["bob"].stack.view.number == 2
    after = sim["cathy"].call("lock", "enter", 0.0)
    sim.run(until=4.0)
    assert [root.error for root in (first, under_way, after)] == [None] * 3
    assert [root.result for root in (first, under_way, after)] == [1, 2, 3]
    assert sim["alice"].objects.host.state("lock") == sim["bob"].objects.host.state("lock") == 3


class Slow(ObjectClass):
    """Takes its time."""

    def initial(self) -> int:
        return 0

    @method
    async def enter(self, ctx: Any, seconds: float) -> int:
        ctx.effect(lambda s: s + 1)
        await ctx.pause(seconds)
        return int(self.state) + 1


# What waits is bounded

VARIANTS = [
    ("object", "reliable"),
    ("object", "datagrams"),
    ("remiop+total", ""),
    ("remiop+object", ""),
]
BUNDLE = 2000  # bytes: by which a window may be exceeded, from each sender
ROOM = 4096  # bytes: of a window of objects, of one of flow, of the queue of an application


def pressed(order: str, over: str, seed: int, *, loss: float = 0.0, objects: Any = None, **more: Any) -> Sim:
    """A group with little room, and messages small enough for a few of them to fit."""
    protocol: dict[str, Any] = {"window": ROOM, **({"over": over} if over else {"size": 8}), **more}
    options = Options(protocol=protocol, queue_max=ROOM, flow={"window": ROOM})
    faults = Faults(loss, 0.0, 0.0, 0.001, 0.01)
    return Sim(
        *NAMES,
        "dave",
        order=order,
        seed=seed,
        options=options,
        faults=faults,
        objects=objects,
        datagram_max=1472,
        record=False,
    )


def links_of(sim: Sim, site: Site) -> Links:
    return site.objects.host.engine.links


def most_held(sim: Sim, until: float) -> dict[str, int]:
    """Run, and give the most that anybody held, left unread, or kept to send it again."""
    most = {"held": 0, "unread": 0, "copies": 0}
    while sim.now < until:
        sim.run(until=sim.now + 0.01)
        for site in sim.sites:
            links = links_of(sim, site)
            copies = sum(
                weight(packet) for peer in links.peers.values() for packet, _ in peer.copies.values()
            )
            # Who does not even read its own messages has only itself to blame.
            unread = sum(batch.packet.size for _, batch in site.queue if batch.sender != site.name)
            now = {"held": links.held, "unread": unread, "copies": copies}
            most = {what: max(most[what], bytes) for what, bytes in now.items()}
    return most


@pytest.mark.parametrize(("order", "over"), VARIANTS)
def test_one_who_does_not_read_and_goes_on_sending_makes_nobody_grow(order: str, over: str) -> None:
    sim = pressed(order, over, seed=1)
    cathy = sim["cathy"]
    cathy.taking = True  # from the point of view of the simulator she is busy with a message for ever
    for number in range(400):
        for site in sim.sites:
            sim.at(0.005 * number, site, lambda site=site: site.send(b"x" * 200))
    most = most_held(sim, 10.0)
    assert most["held"] <= 4 * (ROOM + BUNDLE)
    assert most["copies"] <= 3 * (ROOM + BUNDLE)
    assert most["unread"] <= 8 * (ROOM + BUNDLE)
    assert not any(site.stack.writable for site in sim.sites if site is not cathy)
    assert all(site.stack.chain.blockers() for site in sim.sites if site is not cathy)
    cathy.taking = False
    cathy.pump()
    sim.run()
    sim.check()
    assert all(site.stack.writable for site in sim.sites)
    settled(sim)


def settled(sim: Sim, sites: list[Site] | None = None) -> None:
    """Nothing is left of a run: no timer, and nothing that was kept for somebody or to tell something twice."""
    for site in sites or sim.sites:
        links, engine = links_of(sim, site), site.objects.host.engine
        assert site.stack.ready().wake is None, site.name
        assert (links.held, links.own, links.unread) == (0, 0, 0)
        assert links.outstanding < links.options.window
        assert not links._unsettled
        for peer in links.peers.values():
            left = (peer.copies, peer.early, peer.asked, peer.charges, peer.heartbeat)
            assert not any(left), (site.name, left)
            # The last word about these may be lost, or not be said where it would wait with everything else; then
            # they go with the next one, which is asked for before they are too many.
            assert sum(map(weight, peer.kept)) == peer.kept_size < links.options.window
            assert sim.network.lost or site.objects.crowded or not (peer.kept or peer.there)
        assert engine.idle and not engine.undoable
        assert not engine.failures._ahead and not engine.failures._flushed
        for hosted in engine.hosted.values():
            assert not (hosted.bases or hosted.early or hosted.disowned or hosted.queue._behind)
            assert max(map(len, (hosted.ended, hosted.seen, hosted.unspoken))) <= REMEMBERED_MAX


@pytest.mark.parametrize(("order", "over"), VARIANTS)
def test_little_room_and_slow_readers_do_not_block_a_group(order: str, over: str) -> None:
    for seed in range(6):
        slowly(order, over, seed)


@pytest.mark.hunt
@pytest.mark.parametrize(("order", "over"), VARIANTS)
def test_little_room_and_slow_readers_many_times(order: str, over: str) -> None:
    for seed in range(1000, 1200):
        slowly(order, over, seed)


def slowly(order: str, over: str, seed: int) -> None:
    """Windows of one message or a few, members that stop reading for a while, loss, messages to some."""
    rng = Random(f"{order} {over} {seed}")
    window = rng.choice((1, 1000, ROOM))
    sim = pressed(order, over, seed, loss=rng.choice((0.0, 0.0, 0.2)), window=window)
    for site in sim.sites:
        for number in range(rng.choice((3, 20))):
            to = rng.choice((None, None, "alice", ["bob", "dave"], site.name))
            size = rng.choice((10, 200, 3000))
            at = rng.choice((0.001, 0.02)) * number
            sim.at(at, site, lambda site=site, to=to, size=size: site.send(b"x" * size, to))
    for site in rng.sample(sim.sites, rng.randint(0, 2)):
        site.taking = True
        sim.at(rng.uniform(0.1, 2.0), site, lambda site=site: wakes(sim, site))
    sim.run()
    assert all(site.stack.writable for site in sim.sites), seed
    sim.check()
    settled(sim)


def wakes(sim: Sim, site: Site) -> None:
    site.taking = False
    site.pump()


@pytest.mark.parametrize(("order", "over"), VARIANTS)
def test_one_who_leaves_is_not_waited_for_and_takes_its_objects_with_it(order: str, over: str) -> None:
    """Dave goes with everything under way: messages to him alone, calls to his object, a room full of his own."""
    for seed in range(4):
        objects = {"lock": (Slow, ["dave"]), "hits": Counter}
        sim = pressed(order, over, seed, objects=objects)
        dave = sim["dave"]
        waits = sim["alice"].call("lock", "enter", 0.5)
        for number in range(30):
            sim["bob"].send(b"x" * 200, "dave")
            dave.send(b"y" * 100, [None, "cathy"][number % 2])
        sim.run(until=0.03)
        queued = sim["cathy"].call("lock", "enter", 0.0)
        dave.waiting.clear()
        dave.stack.goodbye(now=sim.now)
        dave.pump()
        sim.run()
        aborted = [waits, queued]
        if sim["bob"].stack.views.follow:
            with pytest.raises(UsageError, match="no object 'lock' in this group; the objects are hits"):
                sim["bob"].call("lock", "enter", 0.0)
        else:
            aborted.append(sim["bob"].call("lock", "enter", 0.0))
        sim["bob"].send(b"for nobody", "dave")
        counted = sim["bob"].call("hits", "inc", 1)
        sim["cathy"].send(b"on")
        sim.run()
        for root in aborted:
            assert isinstance(root.error, InvocationAborted) and root.error.reason == "gone", seed
        assert counted.error is None
        rest = [site for site in sim.sites if site is not dave]
        assert all("on" in site.texts for site in rest) and all(site.stack.writable for site in rest)
        for site in rest:
            peers = {site.stack.view.names[peer] for peer in links_of(sim, site).peers}
            assert peers == {other.name for other in rest if other is not site}
        settled(sim, rest)


@pytest.mark.parametrize(("order", "over"), VARIANTS)
def test_who_is_waited_for_is_told_to_a_person(order: str, over: str) -> None:
    """One message, of ours; the others are not there. It stands still, and no send has to say so."""
    protocol = {"over": over} if over else {}
    layers = find(order).build(Options(protocol=protocol))
    stack = Stack(layers, 2, View.of(*NAMES), rng=Random(1))
    stack.send(b"hello", now=0.0)
    ready, notices, ticks = stack.ready(now=0.0), list[str](), 0
    while ready.wake is not None and ready.wake < 20.0:
        stack.tick(ready.wake)
        ready = stack.ready()
        notices += ready.notices
        ticks += 1
    assert 0 < stack.held <= HELD_MAX and stack.chain.awaited() == {0, 1}
    assert any(text.startswith("delivery has waited 5 s for alice") and "bob" in text for text in notices)
    assert ticks < 200, "what brings nothing is repeated more and more rarely"


# Messages that come far ahead


def burst(calls: int) -> Any:
    async def body(ctx: Any) -> None:
        await ctx.pause(0.2)
        for _ in range(calls):
            ctx.oneway("hits", "inc")

    return body


@pytest.mark.interpreted
@pytest.mark.parametrize("over", OVER)
def test_calls_of_one_who_has_removed_more_members_are_all_kept(
    over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a while bob does not hear what cathy has of dave, who is gone, and alice, who does, goes on calling."""
    monkeypatch.setattr(failures, "AHEAD_MAX", 10)
    sim = Sim(
        "alice",
        "bob",
        "cathy",
        "dave",
        order="object",
        seed=1,
        objects={"hits": (Counter, ["bob", "cathy"])},
        options=Options(protocol={"over": over}, detect=1.0),
        record=False,
    )
    for site in sim.sites:
        site.call("hits", "inc", 0)
    sim.run(until=1.0)
    root = sim["alice"].begin(burst(100))
    sim.network.cut.add((sim["cathy"].index, sim["bob"].index))
    sim["dave"].leave()
    sim.run(until=sim.now + 0.6)
    assert len(sim["bob"].objects.host.engine.failures._ahead) >= 10, "or it shows nothing"
    sim.network.heal()
    sim.run(until=sim.now + 20.0)
    assert root.done and root.error is None
    assert [sim[name].state("hits") for name in ("bob", "cathy")] == [100, 100]
    shown = sim["alice"].call("hits", "show", answers="all")
    sim.run(until=sim.now + 20.0)
    assert shown.done and shown.result == [100, 100]


@pytest.mark.interpreted
@pytest.mark.parametrize("over", OVER)
def test_calls_far_beyond_a_lost_one_are_all_taken(over: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "AHEAD_MAX", 10)
    sim = Sim(
        "alice",
        "bob",
        order="object",
        seed=1,
        objects={"hits": (Counter, ["bob"])},
        options=Options(protocol={"over": over}),
        record=False,
    )
    sim.network.cut.add((sim["alice"].index, sim["bob"].index))
    sim["alice"].oneway("hits", "inc")
    sim.network.heal()
    for _ in range(20):
        sim["alice"].oneway("hits", "inc")
    shown = sim["alice"].call("hits", "show")
    sim.run(until=60.0)
    assert shown.done and shown.result == 21 == sim["bob"].state("hits")
