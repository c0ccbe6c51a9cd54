"""The rows of objects in traces: one for each request, start, response and end, at the process that it concerns."""

from inga.model.compiled import mypyc_attr
from inga.model.invocation import Message
from inga.model.steps import Book, Trace
from inga.objects.hosting import Layout
from inga.objects.instance import Instance

STEPS = {step: step for step in "request start commit abort response undo".split()} | {"die": "abort"}
"""The trace step for each step of the engine that is recorded."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ObjectRows:
    """Observes the engine, and writes its steps to the traces of the application and of our copies."""

    def __init__(self) -> None:
        # By place: the application as a client, and each copy that we have.
        self.traces: dict[int, Trace] = {}
        # Each start of an instance here (object, src, ev, method), if a trial has set a list.
        self.diary: list[tuple[str, int, int, str]] | None = None

    def enter(self, layout: Layout, view: int) -> None:
        """Begin a view, in which places have other numbers."""
        self._layout, self._view = layout, view
        self.traces.clear()

    def record(self, me: int, process: int, book: Book) -> None:
        """Write to the traces of that process and of its copies from now on."""
        self.traces[self._layout.roster.client(me)] = book.trace(process)
        for place, _, _ in self._layout.copies_at(me):
            self.traces[place] = book.trace(process, self._layout.roster.places[place].object)

    def note(
        self, step: str, now: float, place: int, message: Message | None, instance: Instance | None
    ) -> None:
        """Write the row of a step. Mailboxes have none: the layer writes the rows of plain messages."""
        if not self.traces and self.diary is None:
            return
        if step == "start" and self.diary is not None and message is not None:
            name = self._layout.roster.places[place].object
            self.diary.append((name, message.src, message.ev, message.op))
        trace, step = self.traces.get(place), STEPS.get(step, "")
        if trace is None or not step:
            return
        if message is not None:
            self._write(trace, step, now, message, instance)
        elif instance is not None and step != "start":
            ref = ".".join(map(str, instance.start))
            trace.row(step, now, self._view, op="transaction", ref=ref)

    def _write(
        self, trace: Trace, step: str, now: float, message: Message, instance: Instance | None
    ) -> None:
        processes = self._layout.processes
        source = processes.of[message.src]
        if source is None or all(processes.of[each] is None for each in message.dst):
            return
        trace.row(
            step,
            now,
            self._view,
            source,
            message.ev,
            dst=processes.mask(message.dst) if step in ("request", "response") else None,
            deps=processes.vector(message.vector),
            op=message.op or (None if instance is None else instance.call.op) or None,
            ref=".".join(map(str, message.call)) or None,
            note=message.text or message.reason or None,
        )
