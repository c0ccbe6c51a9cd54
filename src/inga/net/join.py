"""Joining a group: options checked, a stack built, sockets opened."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Unpack

from inga.layers.flow import WINDOW_MAX
from inga.model.errors import UsageError
from inga.model.view import MEMBERS_MAX, Member, View
from inga.net.address import Via, choose_interface, parse_host_port, parse_via
from inga.net.carrier import ArrivedDatagrams, Carrier, MulticastCarrier, UnicastCarrier
from inga.net.group import Group
from inga.net.guarding import guard_of, warn_plain
from inga.net.hosts import Hosts
from inga.net.joining import Joining
from inga.net.log import report
from inga.net.options import JoinOptions, check_switch, complete
from inga.net.receipt import Receipts
from inga.net.seeds import SeedFile, Seeds, look_for
from inga.net.states import StateHooks
from inga.net.tcp import TcpCarrier
from inga.net.traces import FOUNDERS, LiveTraces
from inga.objects.hosting import Layout
from inga.recipes import Options, Recipe, find, refuse_late, refuse_unsafe
from inga.recipes.options import PLACE
from inga.secure.sealing import OVERHEAD
from inga.session.door import NAME_MAX
from inga.session.newcomer import Newcomer
from inga.session.pressure import WARN_AFTER
from inga.stack.backlog import Backlog
from inga.stack.places import Places
from inga.stack.stack import Stack
from inga.trace.schema import load_pyarrow
from inga.trial.manifest import manifest_of


def join(
    group: str,
    name: str,
    *,
    members: Sequence[str] | Mapping[str, str] | None = None,
    via: str = "udp://239.7.7.7:7400",
    order: str = "causal",
    trace: str | os.PathLike[str] | None = None,
    late: bool = False,
    address: str | None = None,
    **options: Unpack[JoinOptions],
) -> Joining:
    """Be a member of a group for as long as the `async with` block runs.

    Members find each other by multicast. If `via` is `unicast` or `tcp`, `address="host:port"` is our own address, and `seeds`
    says where others may be: `["host:port", ...]`, of which one running process suffices, or a shared file,
    as `"file:PATH"` or as a `pathlib.Path`. A process that finds no group founds one, with all others that start at the same time.

    Alternatively `members` lists all members, in the same order everywhere: names, or `{name: "host:port"}` if `via` is `unicast` or
    `tcp`. Then other processes can join only with `late`.

    `order` is the order in which messages are delivered. `trace` writes a trace of this member to a directory, which members share. `late`
    joins a running group, and waits until there is one; `members`, if given, are then its founders.
    All other options are those of `inga.net.options.JoinOptions`.
    """
    return Joining(
        f"{name!r} in {group!r}", _membership(group, name, members, via, order, trace, late, address, options)
    )


@asynccontextmanager
async def _membership(
    group: str,
    name: str,
    members: Sequence[str] | Mapping[str, str] | None,
    via: str,
    order: str,
    trace: str | os.PathLike[str] | None,
    late: bool,
    address: str | None,
    options: JoinOptions,
) -> AsyncIterator[Group]:
    """The membership, from joining to leaving."""
    said = complete(options)
    check_switch("late", late)
    states = StateHooks.of(said)
    _check_names(group, name, members)
    if trace is not None and not isinstance(trace, str | os.PathLike):
        raise UsageError(f"trace is a directory that members share, not {trace!r}")
    recipe = _check(name, members, order, late=late, detect=said["detect"])
    refuse_unsafe(recipe, said["unsafe"])
    is_open = members is None
    founders = [] if members is None else list(members)
    place = parse_via(via)
    _refuse_seeds(place, members, said["seeds"])
    seeds, file = look_for(said["seeds"], name, address or "")
    hosts = Hosts(seeds, group)
    carrier = await _carrier(place, name, members, said["interface"], address, hosts, late=late)
    is_addressed = place.kind != "udp"
    carrier.datagram_max = said["datagram_max"] or carrier.datagram_max
    matrix, objects, full = said["matrix"], said["objects"], said["trace_level"] == "full"
    # Otherwise two members with different policies could meet, of which one goes on where the other pauses.
    policy = "" if said["partition"] in (None, recipe.partition) else f" with partition={said['partition']!r}"
    level, order_said = recipe.level_of(said["deliver"]), recipe.name
    chosen = Options(
        echo=said["echo"],
        on_concurrent=said["on_concurrent"],
        coarse=said["coarse"],
        matrix=matrix,
        faults=said["faults"],
        deliver=level,
        unsafe=said["unsafe"],
        greet=True,
        multicast=place.kind == "udp",
        protocol=dict(said["protocol"] or {}),
        objects=objects or {},
        queue_max=said["queue_max"],
        flow={"window": said["window"] or WINDOW_MAX},
        config={"order": recipe.name + " with matrix=True" * matrix + policy},
        accepts=_is_reachable if is_addressed else None,
        open=is_open,
        detect=said["detect"],
        rejoin=said["rejoin"],
        partition=said["partition"],
        slow=said["slow"],
        patience=said["patience"],
        gives=states.gives,
        wants=states.wants,
        start=int(time.time()),
        place=(place.group, place.port) if place.kind == "udp" else PLACE,
    )
    recipe.check(chosen)
    if states.gives or states.wants:
        refuse_late(recipe, said["detect"])
    recipe.check_window(said["window"])
    if is_open:
        _refuse_places(objects)
    layout = recipe.layout([name] if is_open else founders, objects, chosen.protocol)
    meant = recipe.name + "+matrix" * matrix + policy + _same_objects(layout, chosen.protocol)
    known_as = identity(group, meant, founders)
    guard = guard_of(said, recipe, group, name)
    if guard is not None:
        carrier.datagram_max -= OVERHEAD
        carrier.guard = guard
    elif not carrier.is_loopback:
        warn_plain(group, recipe.name, can_be_secured=recipe.wire == "inga")
    loop = asyncio.get_running_loop()
    rng = Random(said["seed"])
    if trace is not None:
        load_pyarrow()  # before others hear of us: it can take longer than `detect`
    newcomer: Newcomer | None = None
    if late or is_open:
        newcomer = Newcomer(
            known_as,
            Member(name, Random().getrandbits(30), address or ""),
            now=loop.time(),
            lobby=group,
            wants=states.wants,
            places=Places(seeds, address or ""),
            founds=None if late else recipe.name,
            traced=trace is not None,
            accepts=chosen.accepts,
            guard=guard,
        )
        door = _Door(carrier, newcomer, loop, file, is_addressed=is_addressed)
        await door.knock()
    try:
        if newcomer is None:
            where = members if isinstance(members, Mapping) else {}
            people = tuple(Member(each, address=where.get(each, "")) for each in founders)
            view = View(1, people, recipe.name, trace is not None, joined=tuple(founders))
            me = founders.index(name)
        else:
            assert newcomer.view is not None
            view, me = newcomer.view, newcomer.me
            recipe = find(view.recipe)
            layout = None
            if is_open and view.number == 1:  # the group was founded just now
                founders = list(view.names)
                layout = recipe.layout(founders, objects, chosen.protocol)
        receipts = Receipts()
        stack = Stack(
            recipe.build(recipe.keep(chosen, order_said)),
            me,
            view,
            rng=rng,
            group=known_as,
            lobby=group,
            receipt=receipts,
            datagram_max=carrier.datagram_max,
            now=loop.time(),
            birth=Random().getrandbits(30) + 1 if recipe.changes_with(said["detect"]) else None,
            places=None if newcomer is None else newcomer.places,
            guard=guard,
            covers="header" if carrier.is_loopback else "all",  # loopback corrupts no bits
        )
        traces: LiveTraces | None = None
        if trace is not None:
            manifest = manifest_of(
                recipe,
                founders,
                layout,
                group=group,
                source="live",
                full=full,
                deliver=level,
                options={FOUNDERS: len(founders)} if is_open else None,
            )
            traces = LiveTraces(Path(trace), manifest, stack, founders=len(founders), full=full)
            stack.record(traces)
        refuses_concurrent = said["on_concurrent"] == "error"
        live = Group(
            group,
            name,
            stack,
            carrier,
            receipts,
            is_addressed=is_addressed,
            is_open=is_open,
            refuses_concurrent=refuses_concurrent,
            states=states,
            on_forged=said["on_forged"],
        )
        live.traces = traces
    except BaseException:  # we were admitted, but may not know the order that the group has now
        carrier.close() if newcomer is None else door.turn_away()
        raise
    try:
        if newcomer is None:
            await carrier.open(live.receive)
            live.begin()
        else:
            if recipe.name != order_said:
                live.disclaim()
            live.begin(newcomer.cuts)
            door.lead_to(live.receive)
        if said["window"] is None:
            live.fits = True
            stack.fit(carrier.granted)
        yield live
    except BaseException:
        # Whatever has happened, do not make the others wait longer than needed.
        await live.close(linger=0.2)
        raise
    else:
        await live.close()
    finally:
        if file is not None:
            file.leave()


class _Door:
    """Receives datagrams for a newcomer, and then for the member that it becomes."""

    def __init__(
        self,
        carrier: Carrier,
        newcomer: Newcomer,
        loop: asyncio.AbstractEventLoop,
        file: SeedFile | None,
        *,
        is_addressed: bool,
    ) -> None:
        self._file = file
        self._carrier = carrier
        self._newcomer = newcomer
        self._is_addressed = is_addressed
        self._loop = loop
        self._heard = asyncio.Event()
        self._then: Callable[[ArrivedDatagrams], None] | None = None

    async def knock(self) -> None:
        """Ask for admission until we are admitted, or refused with a reason."""
        try:
            await self._carrier.open(self._receive)
        except BaseException:
            self._carrier.close()
            raise
        try:
            if self._file is not None:  # only now that the address is ours: it replaces a line with that
                for place in self._file.enter():
                    self._newcomer.places.learn(place)
            await self._ask()
        except BaseException:
            self.turn_away()
            raise

    def turn_away(self) -> None:
        """The newcomer does not join after all: say goodbye, so that the others neither admit it nor wait for it."""
        for to, datagram in self._newcomer.goodbye():
            self._carrier.transmit(to, datagram)
        self._carrier.close()
        if self._file is not None:
            self._file.leave()

    def lead_to(self, receive: Callable[[ArrivedDatagrams], None]) -> None:
        """Hand the datagrams that the newcomer has kept, and all later ones, to `receive`."""
        self._then = receive
        backlog, self._newcomer.backlog = self._newcomer.backlog, Backlog(0)  # frees it: this object stays
        receive(list(backlog))

    def _receive(self, burst: ArrivedDatagrams) -> None:
        if self._then is not None:
            self._then(burst)
        else:
            newcomer = self._newcomer
            newcomer.receive(burst, now=self._loop.time())
            for to, datagram in newcomer.output(self._loop.time()):
                self._carrier.transmit(to, datagram)
            self._know()
            self._heard.set()

    def _know(self) -> None:
        """Once there is a view, tell the carrier the addresses of its members."""
        view = self._newcomer.view
        if view is not None and self._is_addressed:
            self._is_addressed = False
            self._carrier.knows(self._newcomer.me, [member.address for member in view.members])

    async def _ask(self) -> None:
        newcomer, loop = self._newcomer, self._loop
        warn_at = loop.time() + WARN_AFTER
        while newcomer.view is None:
            if newcomer.refused is not None:
                raise newcomer.refused
            now = loop.time()
            if now >= warn_at:
                report("join.waits", "%s still waits to be let in: is anybody there?", newcomer.member.name)
                warn_at = float("inf")
            if newcomer.wake <= now:
                for to, datagram in newcomer.tick(now):
                    self._carrier.transmit(to, datagram)
                self._know()
                continue
            self._heard.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.wait(), max(0.0, newcomer.wake - loop.time()))


async def _carrier(
    place: Via,
    name: str,
    members: Sequence[str] | Mapping[str, str] | None,
    interface: str | None,
    address: str | None,
    hosts: Hosts,
    *,
    late: bool,
) -> Carrier:
    """The carrier for that `via`, once our own address is resolved and those of the others as far as possible."""
    if place.kind == "udp":
        return MulticastCarrier(place, choose_interface(place, interface))
    if members is None:
        if address is None:
            raise UsageError(f"via={place.kind!r} with seeds needs address='host:port', to be reached at")
        _check_place(address, name)
        await hosts.open(address, name)
        alone = [address]
        if place.kind == "unicast":
            return UnicastCarrier(0, alone, hosts)
        return TcpCarrier(0, alone, hosts, late=True)
    if not isinstance(members, Mapping):
        raise UsageError(f"via={place.kind!r} needs addresses: members={{name: 'host:port'}}")
    for member in members:
        _check_place(members[member], member)
    where = list(members.values())
    me = len(where) if late else list(members).index(name)
    if late:
        if address is None:
            raise UsageError(f"via={place.kind!r} with late=True needs address='host:port', to be reached at")
        _check_place(address, name)
        where.append(address)
    await hosts.open(where[me], name, where)
    if place.kind == "unicast":
        return UnicastCarrier(me, where, hosts)
    return TcpCarrier(me, where, hosts, late=late)


def _check_place(address: str, name: str) -> None:
    host, _ = parse_host_port(address, name)
    if host == "0.0.0.0":
        raise UsageError(
            f"the address of {name} is where the others reach it, and nobody reaches {address}: name the host, or its address"
        )


def _check_names(group: object, name: object, members: object) -> None:
    # A set has another order in each process, and a generator can be read only once.
    if members is not None and (
        not isinstance(members, Collection) or isinstance(members, str | bytes | set | frozenset)
    ):
        raise UsageError(
            f"members is a list of names, or a dict of names and addresses, not {members!r}: the same in every process, in "
            "the same order"
        )
    for what, text in (
        ("a group", group),
        ("a member", name),
        *(("a member", each) for each in members or ()),
    ):
        if not isinstance(text, str):
            raise UsageError(f"the name of {what} is text, not {text!r}")
        _refuse_halves(text)
    if not group:
        raise UsageError("a group needs a name: '' names none")


def _refuse_halves(name: str) -> None:
    """Refuse a name that cannot be encoded: Python reads arguments that are not UTF-8 as text with lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{name!r} is no name: there is half a character in it, as in text that is no UTF-8"
        ) from None


def _refuse_seeds(place: Via, members: Sequence[str] | Mapping[str, str] | None, seeds: Seeds | None) -> None:
    """Refuse seeds where they have no meaning, and their absence where nothing else gives addresses."""
    if seeds is not None and members is not None:
        raise UsageError("seeds are for groups whose members nobody names: pass seeds or members, not both")
    if seeds is not None and place.kind == "udp":
        raise UsageError(
            "seeds are for via='unicast' and 'tcp': by multicast members find each other without"
        )
    if seeds is None and members is None and place.kind != "udp":
        raise UsageError(
            f"via={place.kind!r} needs addresses: members={{name: 'host:port'}}, or address='host:port' and "
            "seeds=['host:port', ...] or seeds='file:PATH'"
        )


def _refuse_places(objects: Mapping[str, Any] | None) -> None:
    """Refuse objects with named members: if members are not listed, they are not known beforehand."""
    for name, said in (objects or {}).items():
        if isinstance(said, tuple):
            raise UsageError(
                f"object {name!r} names the members that have a copy: pass members=[...], or leave them out for a copy "
                "at every member"
            )


def _is_reachable(newcomer: Member) -> str | None:
    try:
        parse_host_port(newcomer.address, newcomer.name)
    except UsageError as error:
        return str(error)
    return None


def _same_objects(layout: Layout | None, protocol: Mapping[str, Any]) -> str:
    """The part of the group's identity about objects: it determines the numbers of places, and the conflicts and callers that
    decide the order."""
    objects = {} if layout is None else layout.hosted
    callers: Mapping[str, Iterable[str]] = protocol.get("members_invoking") or {}
    return "".join(
        f"\n{name} {each.cls.__name__} {each.at} {each.cls.conflicts.pairs}"
        + (f" {sorted(callers[name])}" if name in callers else "")
        for name, each in objects.items()
    )


def identity(group: str, order: str, members: Sequence[str]) -> str:
    """The text whose hash tags the packets of a group. Processes with another list of members, and so with other indices, or with
    another order, are in another group."""
    return "\n".join((group, order, *members))


def _check(
    name: str,
    members: Sequence[str] | Mapping[str, str] | None,
    order: str,
    *,
    late: bool,
    detect: float | None,
) -> Recipe:
    recipe = find(order)
    if late or members is None:
        refuse_late(recipe, detect)
        if not 0 < len(name) <= NAME_MAX:
            raise UsageError(f"a member needs a name, of at most {NAME_MAX} characters")
    if members is None:
        return recipe
    names = list(members)
    if not all(names):
        raise UsageError(f"members is a list of names, or a dict of names and addresses, not {members!r}")
    if len(names) > MEMBERS_MAX:
        raise UsageError(f"{len(names)} members are too many: a group has at most {MEMBERS_MAX}")
    if len(set(names)) < len(names):
        raise UsageError(f"two members of one name in {', '.join(names)}: give each a name of its own")
    if not late and name not in names:
        raise UsageError(
            f"{name!r} is not among the members: {', '.join(names) or 'none'}; to join while they run, pass late=True"
        )
    return recipe
