"""The loop that drives a live member's stack.

The driver does nothing per message. It takes a burst from the carrier, gives it to the stack, transmits the stack's
datagrams, puts its deliveries into a queue, and re-arms one timer. If the application waits for a delivery, the turn ends only
after the application has run, so that its answer and our acknowledgement leave in one datagram.

An exception in a turn is a bug in inga, and part of what the turn should have done is lost. The stack then fails with it, as it
does when a disk is full: the other members learn that this member leaves, and the application gets the reason.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from inga.model.errors import IngaError
from inga.net.carrier import ArrivedDatagrams, Carrier
from inga.net.company import Company
from inga.net.log import report
from inga.net.reading import Reading
from inga.stack.stack import Ready, Stack


class Driver:
    """Gives a stack datagrams and the time, and carries out what it requests."""

    def __init__(
        self,
        stack: Stack,
        carrier: Carrier,
        reading: Reading,
        company: Company,
        *,
        on_view: Callable[[], None],
        on_pause: Callable[[], None],
        on_error: Callable[[IngaError], None],
    ) -> None:
        """`on_view` is called when another view is in force, `on_pause` when the group pauses or goes on, `on_error` when
        the stack has failed."""
        self.writers: deque[asyncio.Future[None]] = deque()  # sends that wait for the window to open
        self.is_ending = False  # the end of this turn is scheduled
        self._is_idle = True  # nothing was sent since a burst or timer was handled, and none is being handled
        self._stack = stack
        self._carrier = carrier
        self._reading = reading
        self._company = company
        self._on_view = on_view
        self._on_pause = on_pause
        self._paused = stack.paused  # when `on_pause` was called last
        self._on_error = on_error
        self._view = stack.view  # the last view that `on_view` was called for
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._is_broken = False  # there was an exception in a turn
        self._is_stopped = False

    def receive(self, burst: ArrivedDatagrams) -> None:
        """Give the stack a burst of datagrams."""
        if self._is_stopped:
            return
        stack = self._stack
        self._is_idle = False
        try:
            stack.receive(burst, now=self._time())
            self._company.notice()
            # If the application waits for a delivery and this burst has one, it can answer before the turn ends.
            if stack.to_deliver and self._reading.reader is not None:
                self.act(stack.ready(turn=False))
                self.schedule_end()
            elif not self.is_ending:
                self.act(stack.ready())
        except Exception as error:
            self._break(error)
        self._is_idle = True

    def lead(self) -> None:
        """The application has sent something. If the group was idle, end the turn now, so that the message leaves as soon as the stack
        admits it; if not, it leaves at the end of this turn, together with other messages sent in it."""
        if self.is_ending or not self._is_idle:
            self.schedule_end()
        else:
            self._is_idle = False
            self.end_turn()

    def schedule_end(self) -> None:
        """End this turn in the next iteration of the event loop, after the application has run."""
        if not self.is_ending:
            self.is_ending = True
            self._loop.call_soon(self.end_turn)

    def end_turn(self) -> None:
        self.is_ending = False
        if not self._is_stopped:
            try:
                self.act(self._stack.ready(now=self._time()))
            except Exception as error:
                self._break(error)

    def hand_over(self) -> None:
        """Transmit complete packets now; the turn goes on."""
        if not self._is_stopped:
            try:
                self.act(self._stack.ready(turn=False))
            except Exception as error:
                self._break(error)

    def act(self, ready: Ready) -> None:
        """Carry out what the stack requests."""
        if self._stack.view is not self._view:
            self._view = self._stack.view
            self._on_view()
            self._company.notice()
        if self._stack.paused is not self._paused:
            self._paused = self._stack.paused
            self._on_pause()
        transmit = self._carrier.transmit
        for address, datagram in ready.send:
            transmit(address, datagram)
        if ready.deliver:
            self._reading.add(ready.deliver)
        if self._reading.states is not None:
            self._reading.states.follow(ready.deliver)
        wake = ready.wake
        if wake is not None and (self._timer is None or wake < self._timer_at):
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = wake
            self._timer = self._loop.call_at(wake, self._on_timer)
        if self.writers and ready.writable:
            for future in self.writers:  # a send that finds the window closed again waits again
                if not future.done():
                    future.set_result(None)
            self.writers = deque()
        for notice in ready.notices:
            report(notice.event, "%s", notice, group=self._company.group)
        if ready.error is not None:
            self._on_error(ready.error)

    def stop(self) -> None:
        """The sockets are about to be closed: no turn ends and no timer fires any more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _on_timer(self) -> None:
        self._timer = None
        self._is_idle = False
        try:
            self._stack.tick(self._time())
            self.act(self._stack.ready())
            self._company.notice()  # delayed datagrams (for tests) may have arrived
        except Exception as error:
            self._break(error)
        self._is_idle = True

    def _break(self, error: Exception) -> None:
        """Fail the stack after an exception. If even its goodbye raises one, stop calling it."""
        self._loop.call_exception_handler({"message": "Exception in a turn of a group", "exception": error})
        why = error if isinstance(error, IngaError) else _mistake(error)
        if not self._is_broken:
            self._is_broken = True
            try:
                self._stack.fail(why)
                self.act(self._stack.ready(now=self._time()))
                return
            except Exception:  # most likely from the same bug
                pass
        self.stop()
        self._on_error(why)


def _mistake(error: Exception) -> IngaError:
    """The error that the application gets for an unexpected exception."""
    mistake = IngaError(f"a mistake inside inga, please report it: {type(error).__name__}: {error}")
    mistake.__cause__ = error
    return mistake
