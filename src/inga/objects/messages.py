"""Bundles of plain messages, none of which holds messages of two keys: they are in order with different others."""

from itertools import groupby
from typing import Any

from inga.layers.bundle import Bundle
from inga.model.compiled import mypyc_attr
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.objects.layer import ObjectOrder

HEAD, HEAD_OF_PLACE = 96, 8
"""Bytes that a request takes besides what it carries, and for each place of the group: a bound for small counts."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Messages(Bundle):
    """Gathers what the application sends for an order of objects."""

    def __init__(self, order: ObjectOrder, *, gather: bool = False, coarse: bool = False) -> None:
        """`gather`: while one is on its way, others wait for company; what is below must say when it has arrived."""
        super().__init__(gather=gather, coarse=coarse)
        self._order = order
        self._key: Any = 0  # of the open bundle

    def view(self, view: View) -> None:
        super().view(view)
        room = self._size_max - HEAD - HEAD_OF_PLACE * len(self._order.roster.places) - self._order.key_max
        self._size_max = max(room, self._size_max // 4)

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt:
        if not self._order.keyed:
            return super().send(payloads, dst)
        receipt: Receipt | None = None
        keys = iter([self._order.key_of(payload) for payload in payloads])  # all of them, or none is sent
        for key, some in groupby(payloads, lambda payload: next(keys)):
            if self._open and key != self._key:
                self._close(full=False)
            self._key = key
            receipt = super().send(list(some), dst)
        assert receipt is not None
        return receipt

    def _close(self, *, full: bool) -> None:
        self._order.key = self._key
        super()._close(full=full)
        if self._partial is not None:
            # What carries it gets a number below and is acknowledged, unless it is cut.
            carrier = self._order.latest
            whole = carrier is not None and len(carrier.body) <= self.stack.wire.body_max
            self._partial = carrier if whole else None
