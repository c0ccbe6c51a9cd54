"""A member that only receives, and writes all deliveries to a log."""

import asyncio
import time
from collections.abc import Callable

from inga.model.delivery import Batch
from inga.net.group import Group
from inga.trace.log import LoggedMessage, LogWriter

FLUSH_SECONDS = 0.5
RECORDS_MAX = 65_536  # the most in a file
BYTES_MAX = 64 << 20  # the most not yet written; beyond that, senders have to wait


class Tap:
    """Takes batches of a group and appends them to a log, a file at a time, in a thread."""

    def __init__(
        self,
        group: Group,
        log: LogWriter,
        flush: float = FLUSH_SECONDS,
        told: Callable[[int], None] = lambda records: None,
    ) -> None:
        self.records = 0  # written
        self._group = group
        self._log = log
        self._flush_seconds = flush
        self._told = told
        self._waiting: list[LoggedMessage] = []
        self._bytes = 0
        self._something = asyncio.Event()  # set while records wait to be written
        self._writing: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run until the group is closed. All messages taken by then are written."""
        tasks = {asyncio.ensure_future(self._read()), asyncio.ensure_future(self._flush())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._write()
        for task in done:
            task.result()

    async def _read(self) -> None:
        async for batch in self._group.batches():
            self._take(batch)
            if len(self._waiting) >= RECORDS_MAX or self._bytes >= BYTES_MAX:
                # Meanwhile nothing is taken, so a slow disk slows the group down instead of filling the memory.
                await self._write()

    async def _flush(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(self._flush_seconds)
            await self._write()

    def _take(self, batch: Batch) -> None:
        now = time.time_ns()
        self._something.set()
        for part, data in enumerate(batch.payloads):
            content = bytes(data)
            self._bytes += len(content)
            self._waiting.append(
                LoggedMessage(
                    now,
                    batch.sender,
                    batch.view,
                    batch.src,
                    batch.seq,
                    part,
                    batch.deps,
                    batch.height,
                    batch.concurrent,
                    content,
                )
            )

    async def _write(self) -> None:
        """Write the waiting records to a file, after the previous file is complete."""
        await self._until_written()
        records, self._waiting, self._bytes = self._waiting, [], 0
        self._something.clear()
        if records:
            self._writing = asyncio.ensure_future(self._append(records))
            await self._until_written()

    async def _append(self, records: list[LoggedMessage]) -> None:
        await asyncio.to_thread(self._log.append, records)
        self.records += len(records)
        self._told(self.records)

    async def _until_written(self) -> None:
        """Wait until the file is written, and raise the error if it could not be. If this wait is cancelled, the thread goes on
        writing, and the next call raises its error."""
        while (writing := self._writing) is not None:
            await asyncio.wait({writing})
            if self._writing is writing:
                self._writing = None
                writing.result()
