"""How instances end.

commit      its effects are part of the state; its invoker may still undo them, until the root commits
abort       it has no effects, and its calls abort: those that have committed are undone, each at its place in the order
final       the root has committed: nothing will be undone any more
undone      the undo of a committed instance has run: the calls that the instance made are undone, too
"""

from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.invocation import FAIL
from inga.objects.actions import Ended
from inga.objects.calls import Calls
from inga.objects.declare import error_text
from inga.objects.early import Early
from inga.objects.hosted import Hosted, HostedCall, Stage
from inga.objects.instance import ABORTED, COMMITTED, RUNNING, Instance
from inga.objects.local import Local
from inga.objects.speech import Speech


@mypyc_attr(allow_interpreted_subclasses=True)
class Endings:
    """How the instances of one member end: commit, abort, undo."""

    def __init__(self, local: Local, speech: Speech, calls: Calls, early: Early) -> None:
        self._local = local
        self._speech = speech
        self._calls = calls
        self._early = early

    def finish(self, instance: Instance, result: Any) -> None:
        """The body has ended. The instance commits once all its calls have."""
        if instance.status == RUNNING:
            instance.finished, instance.result = True, result
            self.try_commit(instance)

    def fail(self, instance: Instance, text: str, reason: str = FAIL) -> None:
        """The body has failed, or gives up. An instance that undoes another cannot fail: if its body does, the effects of
        the other are removed from the state instead."""
        if instance.undoes is not None:
            instance.effects = []
            self.finish(instance, None)
        elif instance.status == RUNNING:
            self.abort(instance, reason, text)

    def try_commit(self, instance: Instance) -> None:
        """Commit, if the body has ended and all its calls are answered."""
        if instance.finished and instance.status == RUNNING and not instance.unanswered:
            self._commit(instance)

    def abort(self, instance: Instance, reason: str, text: str, *, respond: bool = True) -> None:
        """End an instance without effect, and abort the calls that it made."""
        local, request = self._local, instance.request
        hosted = local.hosted[instance.place]
        instance.status = ABORTED
        local.counts["aborted"] += 1
        local.note("abort", instance, request)
        self._speech.tell_abort(instance)
        if request is not None and instance.awaited:
            if respond:
                hosted.asked[request.call] = HostedCall(Stage.REFUSED)
                self._speech.respond(instance, reason=reason, text=text)
            else:
                del hosted.asked[request.call]
        hosted.order.abort()
        self._leave(hosted, instance)
        local.out.append(Ended(instance, reason, text))

    def final(self, hosted: Hosted, instance: Instance) -> None:
        """The root has committed: neither this instance nor its calls will be undone."""
        request = instance.request
        assert request is not None
        del hosted.asked[request.call]
        if request.call in hosted.seen:
            hosted.seen[request.call] = instance
        hosted.state.final(request.call)
        self._speech.tell_commit(instance)

    def _commit(self, instance: Instance) -> None:
        hosted = self._local.hosted[instance.place]
        try:
            value = hosted.state.after(instance.effects)
        except Exception as error:  # an effect is code of the method, so the method has failed
            if instance.undoes is None:
                text = f"{instance.call.op}: an effect raised {error_text(error)}"
                self.abort(instance, FAIL, text)
                return
            instance.effects, value = [], None  # remove the effects of the other instance instead
        instance.status = COMMITTED
        if instance.undoes is not None:
            self._undone(hosted, instance, instance.undoes, value)
        else:
            self._committed(hosted, instance, value)
        hosted.order.commit(instance, instance.call.op)
        self._leave(hosted, instance)
        self._local.out.append(Ended(instance, "", ""))

    def _committed(self, hosted: Hosted, instance: Instance, value: Any) -> None:
        local, request = self._local, instance.request
        name = request.call if request is not None and instance.awaited else None
        hosted.state.apply(value, instance.effects, name)
        local.counts["committed"] += 1
        local.note("commit", instance, request)
        if name is None:
            self._speech.tell_commit(instance)
        else:
            self._speech.respond(instance, value=instance.result)
            hosted.asked[name] = HostedCall(Stage.DONE, instance=instance)

    def _undone(self, hosted: Hosted, instance: Instance, undoes: Instance, value: Any) -> None:
        request = undoes.request
        assert request is not None
        if instance.effects:
            hosted.state.final(request.call)
            hosted.state.apply(value, instance.effects)
        else:
            hosted.state.undo(request.call)
        del hosted.asked[request.call]
        self._local.note("undone", instance, instance.request)
        self._speech.tell_abort(undoes)

    def _leave(self, hosted: Hosted, instance: Instance) -> None:
        """The instance has ended: nothing waits for it any more."""
        self._local.running.pop(instance, None)
        self._calls.forget(instance)
        self._local.note("end", instance, instance.request)
        hosted.bases.pop(instance.base, None)
        self._early.forget(hosted, instance.base, committed=instance.status == COMMITTED)
        hosted.queue.ended(instance)
