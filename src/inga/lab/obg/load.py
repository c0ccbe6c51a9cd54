"""The load of OBG's evaluation: which objects call which methods, and which methods are compatible.

There are sixty roots, one about every two time units. Each sends one one-way request to two or more random objects; three
in ten first call a single object, whose instance calls several in turn. Methods take no time, a copy travels one to
nine time units. Random choices depend on the seed alone, so all orders get the same requests and delays.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement
from random import Random

METHODS = 10
ROOTS = 60
INTERVAL = 2.0
"""Mean time between roots."""

DELAY = (1.0, 9.0)
NESTED = 0.3
"""The share of roots that call a single object first."""

LOOKED_AT = 40
"""The number of pairs of requests of one simulation that are observed for whether they are ordered: see `observed`."""

MODELS = ("methods", "pairs")
"""Meanings of the compatible share: of methods that are compatible with all, or of pairs of methods."""

ORDERS = ("object", "causal", "total")


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """One request, to all its destinations. `then` is the request that the instance which it starts makes in turn; only requests to a
    single destination have one."""

    number: int
    dst: tuple[int, ...]
    op: int
    then: "LoadRequest | None" = None


@dataclass(frozen=True, slots=True)
class LoadRoot:
    """A transaction of a client at one object."""

    at: float
    obj: int
    requests: tuple[LoadRequest, ...]


@dataclass(frozen=True)
class Load:
    """One simulation. `share` is in percent."""

    model: str
    n: int
    share: int
    order: str
    seed: int = 0
    roots: int = ROOTS
    looked_at: int = LOOKED_AT
    invokers: int = 0  # so many members, the first ones, and their objects make calls; 0: all do
    told: bool = False  # objects are told which members call: the option `invoking`

    @cached_property
    def conflicts(self) -> frozenset[frozenset[int]]:
        """The pairs of methods that conflict; a set of one method means that it conflicts with itself."""
        pairs = [frozenset(pair) for pair in combinations_with_replacement(range(METHODS), 2)]
        if self.order == "total":
            return frozenset(pairs)
        if self.model == "methods":
            free = set(range(round(METHODS * self.share / 100)))
            return frozenset(pair for pair in pairs if not pair & free)
        rng = Random(f"pairs {self.seed}")
        compatible = rng.sample(pairs, round(len(pairs) * self.share / 100))
        return frozenset(pairs) - frozenset(compatible)

    @cached_property
    def plan(self) -> tuple[LoadRoot, ...]:
        """The roots and their requests; the same for every order, model and share."""
        rng = Random(f"plan {self.n} {self.seed}")
        at, number = 0.0, 0
        roots = []

        def request(count: int, then: LoadRequest | None = None) -> LoadRequest:
            nonlocal number
            number += 1
            return LoadRequest(number, tuple(rng.sample(range(self.n), count)), rng.randrange(METHODS), then)

        callers = self.invokers or self.n
        for _ in range(self.roots):
            at += rng.expovariate(1 / INTERVAL)
            asked = []
            if rng.random() < NESTED:
                first = request(1, request(rng.randint(2, self.n)))
                asked.append(replace(first, dst=(first.dst[0] % callers,)))
            asked.append(request(rng.randint(2, self.n)))
            roots.append(LoadRoot(at, rng.randrange(self.n) % callers, tuple(asked)))
        return tuple(roots)

    @cached_property
    def requests(self) -> dict[int, LoadRequest]:
        """All requests, by number."""
        found = {}
        for root in self.plan:
            for asked in root.requests:
                each: LoadRequest | None = asked
                while each is not None:
                    found[each.number] = each
                    each = each.then
        return found

    def delay(self, number: int, src: int, dst: int) -> float:
        """Return how long the copy of a request for `dst` travels; 0 if that is the sender itself."""
        if src == dst:
            return 0.0
        return Random(f"delay {self.n} {self.seed} {number} {dst}").uniform(*DELAY)


@dataclass(frozen=True, slots=True)
class LoadMeans:
    """Means of one simulation. Shares are in percent of the pairs of requests with a common destination; times
    are of copies that travelled."""

    ordered: float  # pairs that start in one order, whichever arrives first: observed
    wait: float  # from the receipt of a request to its start
    delay: float  # from its send to its start
    waiting: float = 0.0  # pairs of which one does not start before the other has arrived: observed
    needed: float = 0.0  # object: pairs that conflict, so that they have to be ordered
    literal: float = 0.0  # object: pairs related by precedence or by conflict, as the paper has it
    precede: float = 0.0  # object: pairs related by significant precedence alone
    control: float = 0.0  # object, total: packets besides requests, per request
    packets: float = 0.0  # per request: copies of it, and control packets
    bytes: float = 0.0  # of these
    numbers: float = (
        0.0  # entries of vectors, matrices and heartbeats in these, which receivers have to process
    )
    cpu: float = field(
        default=0.0, compare=False
    )  # object, total: microseconds of CPU in the engines, per request


def pairs_with_a_common_destination(load: Load) -> list[tuple[int, int]]:
    """Return the pairs of requests with a common destination, by number, the lower first."""
    requests = sorted(load.requests.values(), key=lambda each: each.number)
    return [
        (one.number, other.number)
        for at, one in enumerate(requests)
        for other in requests[at + 1 :]
        if set(one.dst) & set(other.dst)
    ]
