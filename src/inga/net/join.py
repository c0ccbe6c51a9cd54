"""Joining a group: options checked, a stack built, sockets opened."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from inga.layers.flow import WINDOW_MAX
from inga.layers.shape import Faults
from inga.model.errors import IngaError, TraceError, UsageError
from inga.model.view import View
from inga.net.address import choose_interface, parse_host_port, parse_via
from inga.net.carrier import Carrier, MulticastCarrier, UnicastCarrier
from inga.net.group import Group
from inga.net.receipt import receipts_of_a_group
from inga.net.tcp import TcpCarrier
from inga.recipes import Options, Recipe, find
from inga.stack.stack import Stack
from inga.trace.manifest import Manifest
from inga.trace.reader import read_manifest
from inga.trace.writer import TraceWriter


@asynccontextmanager
async def join(
    group: str,
    name: str,
    *,
    members: Sequence[str] | Mapping[str, str] | None = None,
    via: str = "udp://239.7.7.7:7400",
    order: str = "causal",
    deliver: str | None = None,
    on_concurrent: str = "deliver",
    echo: bool | None = None,
    secret: bytes | None = None,
    trace: str | os.PathLike[str] | None = None,
    trace_level: str = "full",
    interface: str | None = None,
    datagram_max: int | None = None,
    window: int | None = None,
    queue_max: int = 16 << 20,
    coarse: bool = False,
    protocol: Mapping[str, Any] | None = None,
    faults: Faults | None = None,
    seed: int | None = None,
) -> AsyncIterator[Group]:
    """Be a member of a group for as long as the `async with` block runs.

    `members` lists everybody, in the same order everywhere: names, or `{name: "host:port"}` where
    `via` is `unicast` or `tcp`. `trace` writes what happens here to a directory that members share.
    `deliver` is the level at which messages are handed over, of those the order has. `protocol` are
    options of the order's own, such as `{"window": 8}`. `faults`, `window`, `queue_max` and `seed` are
    for tests.
    """
    recipe = _check(name, members, order, secret, trace_level)
    level = recipe.level_of(deliver)
    assert members is not None
    names = list(members)
    me = names.index(name)
    view = View.of(*names, recipe=recipe.name, traced=trace is not None)
    place = parse_via(via)
    loop = asyncio.get_running_loop()
    carrier: Carrier
    if place.kind == "udp":
        carrier = MulticastCarrier(place, choose_interface(place, interface))
    else:
        if not isinstance(members, Mapping):
            raise UsageError(f"via={via!r} needs addresses: members={{name: 'host:port'}}")
        where = [parse_host_port(members[member], member) for member in names]
        carrier = UnicastCarrier(me, where) if place.kind == "unicast" else TcpCarrier(me, where)
    if datagram_max is not None:
        if not 256 <= datagram_max <= 65000:
            raise UsageError("datagram_max is between 256 and 65000 bytes")
        carrier.datagram_max = datagram_max
    if (window is not None and window < 1) or queue_max < 1:
        raise UsageError("window and queue_max are at least 1 byte")
    options = Options(
        echo=echo,
        on_concurrent=on_concurrent,
        coarse=coarse,
        faults=faults,
        deliver=level,
        greet=True,
        protocol=dict(protocol or {}),
        queue_max=queue_max,
        flow={"window": window or WINDOW_MAX},
    )
    receipts = receipts_of_a_group()
    stack = Stack(
        recipe.build(options),
        me,
        view,
        rng=Random(seed),
        group=identity(group, recipe.name, names),
        receipt=receipts,
        datagram_max=carrier.datagram_max,
        now=loop.time(),
    )
    receipts.levels = stack.levels
    if isinstance(carrier, MulticastCarrier):
        carrier.addresses = stack.addresses
    writer: TraceWriter | None = None
    if trace is not None:
        claims = recipe.promises(level)
        full = trace_level == "full"
        writer = _open_trace(Path(trace), group, names, me, recipe, claims, stack, full=full)
    live = Group(group, name, stack, carrier, recipe, receipts)
    live.trace = stack.trace = writer
    try:
        await live.open()
        if window is None:
            stack.fit(carrier.granted)
        yield live
    except BaseException:
        # Whatever happened, do not make the others wait longer than needed.
        await live.close(linger=0.2)
        raise
    else:
        await live.close()


def identity(group: str, order: str, members: Sequence[str]) -> str:
    """What packets of a group are known by: whoever means another list of members, in which
    everybody has other numbers, or another order, is in another group."""
    return "\n".join((group, order, *members))


def _check(
    name: str,
    members: Sequence[str] | Mapping[str, str] | None,
    order: str,
    secret: bytes | None,
    trace_level: str,
) -> Recipe:
    recipe = find(order)
    if members is None:
        raise UsageError("finding members by itself is not built yet: pass members=[...]")
    names = list(members)
    if isinstance(members, str) or not all(names):
        raise UsageError("members is a list of names, or a dict of names and addresses")
    if len(set(names)) < len(names):
        raise UsageError("two members of one name")
    if name not in names:
        raise UsageError(f"{name!r} is not among the members: {', '.join(names)}")
    if secret is not None:
        raise UsageError("groups with a secret are not built yet")
    if trace_level not in ("full", "deliveries"):
        raise UsageError(f"trace_level is full or deliveries, not {trace_level!r}")
    return recipe


def _open_trace(
    directory: Path,
    group: str,
    names: list[str],
    me: int,
    recipe: Recipe,
    claims: Sequence[str],
    stack: Stack,
    *,
    full: bool,
) -> TraceWriter:
    """This member's part of a trace; whoever comes first writes the manifest."""
    if not (directory / "manifest.json").exists():
        Manifest(
            group=group,
            processes=names,
            source="live",
            order=recipe.name,
            guarantees=list(claims),
            receipt=recipe.receipt,
            clock="wall",
        ).write(directory)
    elif read_manifest(directory).processes != names:
        raise UsageError(f"{directory} holds a trace of another group")
    return _LiveTrace(
        directory, me, names[me], len(names), full=full, origin=time.time() - stack.now, on_failure=stack.fail
    )


class _LiveTrace(TraceWriter):
    """A trace that fails its group, instead of raising in the middle of whatever wrote a row."""

    def __init__(self, *where: Any, on_failure: Callable[[IngaError], None], **options: Any) -> None:
        self._on_failure = on_failure
        super().__init__(*where, **options)

    def _hand_over(self, seal: bool = False) -> None:
        try:
            super()._hand_over(seal)
        except TraceError as error:
            if self._closed:
                raise
            self._on_failure(error)
