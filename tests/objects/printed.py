"""The ordering rule as it is printed, with vectors of identifiers: what the corrections are measured against."""

from inga.model.invocation import ONE_WAY, REQUESTS, Message, SendId
from inga.objects.roster import Pairs

NOTHING = (0, 0, 0)
Id = tuple[int, int, int]


def id_of(send: SendId) -> Id:
    return (send.start.clock, send.start.place, send.number)


class Printed:
    """Vectors of identifiers at all objects of a run: one component for each object, the largest identifier known of
    it. They are merged when any instance commits. A response has the identifier of its request, so none of its own."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.objects = [[NOTHING] * width for _ in range(width)]
        self.instances: dict[object, list[Id]] = {}
        self.messages: dict[SendId, tuple[Id, ...]] = {}

    def start(self, instance: object, place: int) -> None:
        self.instances[instance] = list(self.objects[place])

    def send(self, instance: object, message: Message) -> None:
        vector = self.instances[instance]
        self.messages[message.id] = tuple(vector)
        if message.kind in REQUESTS:
            vector[message.src] = max(vector[message.src], id_of(message.id))

    def deliver(self, instance: object, message: Message) -> None:
        vector = self.instances[instance]
        self._merge(vector, self.messages[message.id])
        if message.kind in REQUESTS:
            vector[message.src] = max(vector[message.src], id_of(message.id))

    def commit(self, instance: object, place: int) -> None:
        self._merge(self.objects[place], self.instances[instance])

    def _merge(self, vector: list[Id], other: "list[Id] | tuple[Id, ...]") -> None:
        vector[:] = map(max, vector, other)

    def precedes(self, one: Message, other: Message, relation: Pairs, *, repaired: bool = False) -> bool:
        """The printed rule; `repaired`: "one-way" where it says asynchronous."""
        first, second = id_of(one.id), id_of(other.id)
        if one.src == other.src:
            if one.id.start == other.id.start:
                return first < second
            some_response = one.kind not in REQUESTS or other.kind not in REQUESTS
            not_answered = one.kind == (ONE_WAY if repaired else "a")
            return one.cohort != other.cohort and first < second and (some_response or not_answered)
        mine, theirs = self.messages[one.id], self.messages[other.id]
        i, j = one.src, other.src
        return (
            first <= theirs[i]
            and mine[j] <= second
            and all(mine[k] <= theirs[k] for k in range(self.width) if k not in (i, j))
            and one.kind in REQUESTS
            and other.kind in REQUESTS
            and other.op in relation.of(one.op)
        )
