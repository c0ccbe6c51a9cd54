"""Answers that reach a copy of a replicated object before that copy has made the call.

The copy that made the call may be faster than another one, which has not made it yet, or has not even begun the
instance. The answer is kept there until the call is made. If that never happens, because the instance was aborted
here, the effects of the call must be undone by the copy that is then the speaker.
"""

from inga.model.compiled import mypyc_attr
from inga.model.invocation import ABORT, CallId, Message
from inga.objects.hosted import Hosted, base_of, remember
from inga.objects.instance import Instance
from inga.objects.local import Local
from inga.objects.speech import Speech


@mypyc_attr(allow_interpreted_subclasses=True)
class Early:
    """Answers that arrived before their calls, for all places of one member."""

    def __init__(self, local: Local, speech: Speech) -> None:
        self._local = local
        self._speech = speech

    def keep(self, hosted: Hosted, response: Message) -> None:
        """Keep an answer to a call that no instance here has made yet."""
        base = response.call[:-1]
        if len(base) < 4 or not self._local.roster.is_replicated[hosted.place] or hosted.ended.get(base):
            return
        instance = hosted.bases.get(base)
        if base in hosted.ended or (instance is None and self._is_lost(hosted, base)):
            self._disown(hosted, [response])
        elif instance is None or response.call not in instance.calls:
            if base not in hosted.early:
                remember(hosted.early, base, [])
            answers = hosted.early[base]
            if not any(each.call == response.call and each.src == response.src for each in answers):
                answers.append(response)

    def take(self, instance: Instance, call: CallId) -> list[Message]:
        """Remove and return the answers to a call that the instance makes only now."""
        early = self._local.hosted[instance.place].early
        answers = early.pop(instance.base, [])
        rest = [each for each in answers if each.call != call]
        if rest:
            early[instance.base] = rest
        return [each for each in answers if each.call == call]

    def forget(self, hosted: Hosted, base: CallId, *, committed: bool = False) -> None:
        """The instance has ended, or will never begin: forget answers to its calls."""
        if self._local.roster.is_replicated[hosted.place]:
            remember(hosted.ended, base, committed)
            answers = hosted.early.pop(base, [])
            if not committed:
                self._disown(hosted, answers)

    def take_over(self, hosted: Hosted) -> None:
        """A member is gone: abort calls that its copy of our object made and can no longer abort, if our copy is the speaker now;
        else remember the answers."""
        lost = [base for base in hosted.early if base not in hosted.bases and self._is_lost(hosted, base)]
        answers = [response for base in lost for response in hosted.early.pop(base)]
        answers += hosted.disowned.values()
        hosted.disowned.clear()
        self._disown(hosted, answers)

    def _is_lost(self, hosted: Hosted, base: CallId) -> bool:
        """Whether the request that would start that instance was lost with the member that sent it."""
        if self._local.roster.member_of[base[1]] in self._local.alive:
            return False
        return not any(base_of(entry.message, hosted.object) == base for entry in hosted.queue)

    def _disown(self, hosted: Hosted, responses: list[Message]) -> None:
        """Handle answers to an instance that was aborted here before it made the calls. As long as the copy that made a call
        is alive, that copy aborts it; remember the answer. If it is gone, it may have failed before that: then the speaker
        aborts the call, at all copies of the object that has answered. Copies of it that have not answered may never do so:
        they may wait for calls that only their speaker would make, and that speaker has answered and ended."""
        local, roster = self._local, self._local.roster
        calls = {(*response.call, roster.object_of[response.src]): response for response in responses}
        for name, response in calls.items():
            if local.is_complete or local.alive_of(response.dst)[:1] != (hosted.place,):
                remember(hosted.disowned, name, response)
                continue
            nobody = hosted.order.root()
            hosted.order.abort()
            copies = roster.copies.get(roster.places[response.src].object, ())
            self._speech.say(nobody, ABORT, copies, call=response.call, op=response.op)
