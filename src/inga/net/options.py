"""The options of `inga.join` besides members, addresses and order.

Every option has a default. An option that the order does not support is refused, with the orders that support it.

A process that joins a running group has missed messages. `on_state_request=f` and `on_state=g` give it the state of the
application: `f()` returns an iterator of bytes, at one member that has taken everything before the view with the newcomer
and nothing after it; `await g(chunks)` takes them at the newcomer, before its first delivery. `history=10` replays the
last ten messages instead, `history=2.5` those of the last 2.5 seconds. See docs/protocols/membership.md.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import inf
from typing import Any, TypedDict, cast

from inga.keys.identity import Identity
from inga.keys.secret import Secret
from inga.layers.numbers import check_seconds
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.text import suggest
from inga.net.seeds import Seeds
from inga.session.pressure import QUEUE_MIN
from inga.session.quorum import check_partition
from inga.session.slow import PATIENCE, check_policy

ARGUMENTS = ("members", "via", "order", "trace", "late", "address")
"""The arguments of `inga.join` besides these options."""

DATAGRAM_MIN, DATAGRAM_MAX = 256, 65000

DETECT_MIN = 0.05
"""The smallest `detect`, in seconds."""


GiveState = Callable[[], Any]
"""Returns the state of an application: an iterator of bytes, or an asynchronous one."""

TakeState = Callable[[AsyncIterator[bytes]], Any]
"""Takes the state of another member's application."""


ForgedListener = Callable[[dict[str, int]], Any]
"""Takes the numbers of datagrams dropped so far, by reason."""


class JoinOptions(TypedDict, total=False):
    """Options of `inga.join`, by group."""

    # of the order
    deliver: str | None  # level at which messages are delivered, one of the order's; None: the order's own
    echo: bool | None  # deliver our own messages to us, too; None: as the order prefers
    on_concurrent: str  # vector: what to do with a message that is concurrent with a known one: "deliver", "error" or "ignore"
    matrix: bool  # vector: count per pair of members, for groups that mostly send to subsets; the same at all members
    coarse: bool  # do not close a bundle when the application takes a message: fewer packets, coarser causes
    protocol: Mapping[str, Any] | None  # options of the order's own protocol, such as {"window": 8}
    objects: (
        Mapping[str, Any] | None
    )  # object, total: for each object's name a class, or a class and the members with a copy
    unsafe: bool  # allow the orders that exist for teaching only, which misorder messages or block
    # of the members
    detect: float | None  # seconds of silence after which a member is excluded. None: never
    rejoin: bool  # if the others have excluded us, rejoin by ourselves, as a new member
    slow: str  # a member that holds up the others: "wait" for it, "expel" it, or let it "skip" messages
    patience: float  # seconds after which it is expelled, or skips
    partition: (
        str | None
    )  # if the network is cut, which parts go on: "primary" or "all"; None: as the order prefers
    seeds: Seeds | None  # unicast, tcp: where to look for members that are not listed: addresses, or a file
    # of those who join
    on_state_request: (
        GiveState | None
    )  # returns our state for a newcomer, as an iterator of bytes; called when our iteration reaches its view
    on_state: TakeState | None  # called when we join: takes such a state, before the first delivery
    history: (
        int | float | None
    )  # replay so many last messages to newcomers; a float: those of so many last seconds
    # of the trace
    trace_level: str  # "full", or "deliveries" alone
    # of the network
    interface: str | None  # network interface for multicast, by name or address
    datagram_max: int | None  # bytes of the largest datagram
    window: (
        int | None
    )  # bytes in flight at most, as the kernel counts them; None: by the buffers that the kernel grants
    queue_max: int  # unread bytes above which we make senders wait
    # of security
    secret: (
        Secret | str | os.PathLike[str] | None
    )  # the secret that all members share: a Secret, its text, or "file:PATH"
    identity: (
        Identity | str | os.PathLike[str] | None
    )  # our certificate and key from the group's authority, or a file with them
    on_forged: (
        ForgedListener | None
    )  # called at most once a second with the numbers of dropped datagrams by reason, if these grew
    # for tests
    faults: Faults | None  # faults to inject into arriving datagrams
    seed: int | None  # seed of all random choices


DEFAULTS: JoinOptions = {
    "deliver": None,
    "echo": None,
    "on_concurrent": "deliver",
    "matrix": False,
    "coarse": False,
    "protocol": None,
    "objects": None,
    "unsafe": False,
    "detect": 3.0,
    "rejoin": False,
    "slow": "wait",
    "patience": PATIENCE,
    "partition": None,
    "seeds": None,
    "on_state_request": None,
    "on_state": None,
    "history": None,
    "trace_level": "full",
    "interface": None,
    "datagram_max": None,
    "window": None,
    "queue_max": 16 << 20,
    "secret": None,
    "identity": None,
    "on_forged": None,
    "faults": None,
    "seed": None,
}


SWITCHES = ("echo", "matrix", "coarse", "unsafe", "rejoin")
"""Options that are True or False; `echo` may be None, too."""

KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "protocol": ((Mapping,), "a dict of what the order has of its own, such as {'window': 8}"),
    "objects": ((Mapping,), "a dict of names and classes, such as {'hits': Counter}"),
    "seeds": (
        (str, os.PathLike, Sequence),
        "a list of addresses, such as ['10.0.0.1:7400'], or a file, as 'file:PATH'",
    ),
    "interface": ((str,), "the name of an interface, or its address"),
    "datagram_max": ((int,), "a whole number of bytes"),
    "window": ((int,), "a whole number of bytes"),
    "queue_max": ((int,), "a whole number of bytes"),
    "identity": ((Identity, str, os.PathLike), "an Identity, or the path of a file with one"),
    "faults": ((Faults,), "inga.Faults, such as inga.Faults(loss=0.1)"),
    "seed": ((int,), "a whole number"),
}
"""The types of options that nothing else checks, and their description for a person."""


def complete(options: JoinOptions) -> JoinOptions:
    """The options with all defaults filled in, checked as far as that is possible without knowing the order."""
    for name in options:
        if name not in DEFAULTS:
            raise UsageError(f"inga.join has no option {name!r}{suggest(name, (*ARGUMENTS, *DEFAULTS))}")
    said = cast(JoinOptions, {**DEFAULTS, **options})
    _check_kinds(said)
    datagram_max, window = said["datagram_max"], said["window"]
    if datagram_max is not None and not DATAGRAM_MIN <= datagram_max <= DATAGRAM_MAX:
        raise UsageError(
            f"datagram_max is between {DATAGRAM_MIN} and {DATAGRAM_MAX} bytes, not {datagram_max}"
        )
    if window is not None and window < 1:
        raise UsageError(f"window is at least 1 byte, not {window}")
    if said["queue_max"] < QUEUE_MIN:
        raise UsageError(
            f"queue_max is at least {QUEUE_MIN} bytes, not {said['queue_max']}: every message fills a smaller queue"
        )
    if said["detect"] is not None:
        check_seconds("detect", said["detect"])
        if said["detect"] < DETECT_MIN:
            raise UsageError(f"detect is at least {DETECT_MIN:g} s: a busy machine is silent for as long")
    if said["on_forged"] is not None and not callable(said["on_forged"]):
        raise UsageError(f"on_forged is a function, not {said['on_forged']!r}")
    check_partition(said["partition"])
    check_policy(said["slow"])
    check_seconds("patience", said["patience"])
    _check_states(said)
    if said["trace_level"] not in ("full", "deliveries"):
        raise UsageError(f"trace_level is full or deliveries, not {said['trace_level']!r}")
    return said


def check_switch(name: str, value: Any) -> None:
    """Refuse a switch that is not a bool. To Python any non-empty text is true, even "no" and "false", as it may come from an environment
    or a file."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} is True or False, not {value!r}")


def _check_kinds(said: JoinOptions) -> None:
    """Refuse values of a wrong type, which would otherwise fail later, in other code."""
    checked = cast(dict[str, Any], said)
    for name in SWITCHES:
        if checked[name] is not None or name != "echo":
            check_switch(name, checked[name])
    for name, (kinds, words) in KINDS.items():
        value = checked[name]
        if value is None and DEFAULTS[name] is None:  # type: ignore[literal-required]
            continue
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise UsageError(f"{name} is {words}, not {value!r}")


def _check_states(said: JoinOptions) -> None:
    history = said["history"]
    for name in ("on_state_request", "on_state"):
        hook = said[name]
        if hook is not None and not callable(hook):
            raise UsageError(f"{name} is a function, not {hook!r}")
        if hook is not None and history is not None:
            raise UsageError(f"who joins gets a history or a state: history and {name} do not go together")
    if history is None:
        return
    if type(history) not in (int, float) or not 0 < history < inf:
        raise UsageError(f"history is a number of messages (10), or of seconds (2.5), not {history!r}")
