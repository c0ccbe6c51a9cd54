"""Bundles of plain messages. All messages of a bundle have one key, since each key is ordered by itself."""

from itertools import groupby
from typing import Any

from inga.layers.bundle import Bundle
from inga.model.compiled import mypyc_attr
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.objects.layer import ObjectOrder

HEAD, HEAD_OF_PLACE = 96, 8
"""Bytes that a request takes besides the packet in it, and bytes for each place of the group: enough while counts are small."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Messages(Bundle):
    """Gathers the application's messages into bundles, for an order of objects."""

    def __init__(self, order: ObjectOrder, *, gather: bool = False, coarse: bool = False) -> None:
        """`gather`, `coarse`: as for `Bundle`. To gather, the layers below have to report acknowledgements."""
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
        keys = iter([self._order.key_of(payload) for payload in payloads])  # all, before anything is sent
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
            # The packet that carries the bundle is numbered below and acknowledged, unless it is cut into fragments.
            carrier = self._order.latest
            whole = carrier is not None and len(carrier.body) <= self.stack.wire.body_max
            self._partial = carrier if whole else None
