"""The messages of instances, and which copy of a replicated object sends them.

Copies of a replicated object that run the same instance make the same calls. The first of them that is alive, the
*speaker*, sends them; the others remember the messages that they left to it, and send them when it is gone.
"""

from typing import Any

from inga.model.compiled import mypyc_attr
from inga.model.invocation import (
    ABORT,
    ASYNCHRONOUS,
    COMMIT,
    ONE_WAY,
    REQUESTS,
    RESPONSE,
    SYNCHRONOUS,
    Message,
)
from inga.objects.hosted import Hosted, Unspoken
from inga.objects.instance import ABORTED, RUNNING, Instance, Pending
from inga.objects.local import Local

SAID = {
    **dict.fromkeys(REQUESTS, "request"),
    RESPONSE: "response",
    COMMIT: "tell commit",
    ABORT: "tell abort",
}
"""The observer's step for sending each kind of message."""

CUT = " ... (cut)"
"""The end of a text that was truncated."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Speech:
    """Sends all messages of one member's places."""

    def __init__(self, local: Local) -> None:
        self._local = local

    def request(self, instance: Instance, call: Pending) -> None:
        """Send the request of an instance's call."""
        op, args, named = call.request
        rest: dict[str, Any] = {"call": call.id, "op": op, "args": args, "named": named}
        if call.kind == ONE_WAY:
            rest["path"] = (call.id,)
        else:
            rest |= {
                "path": (*instance.path, call.id[-1]),
                "hosts": instance.hosts,
                "holds": instance.holds,
            }
        self._say_once(instance, call.kind, call.dst, **rest)

    def respond(self, instance: Instance, *, value: Any = None, reason: str = "", text: str = "") -> None:
        """Answer the request of an instance. A text that is too long for the layers below is truncated."""
        request, room = instance.request, self._local.options.room
        assert request is not None
        if room is not None:
            text = cut(text, room - len(request.op.encode("utf-8", "surrogatepass")))
        said = {"call": request.call, "op": request.op, "value": value, "reason": reason, "text": text}
        self.say(instance, RESPONSE, request.hosts[-1], **said)

    def answer_for(self, hosted: Hosted, request: Message, **rest: Any) -> None:
        """Answer a request that does not run here."""
        instance = hosted.order.start(request, "", (*request.path, hosted.object), ())
        hosted.order.abort()
        instance.status = ABORTED
        self.respond(instance, **rest)

    def tell_commit(self, instance: Instance) -> None:
        """Tell all places that an instance has called that it commits. In one message, which either all remaining members get
        or none: if there were several, a failing member might send only some, and only some of its calls would be undone."""
        if not instance.calls:
            return
        calls = [call for call in instance.calls.values() if call.kind != ONE_WAY and not call.dropped]
        if calls:
            places = tuple(sorted({place for call in calls for place in call.dst}))
            numbers = tuple(call.id[-1] for call in calls)
            self._say_once(instance, COMMIT, places, call=instance.base, args=numbers)

    def tell_abort(self, instance: Instance) -> None:
        """Tell all places that an instance has called that it aborts."""
        for call in instance.calls.values():
            if call.kind != ONE_WAY and not call.dropped:
                self.take_back(instance, call)

    def take_back(self, instance: Instance, call: Pending) -> None:
        """Tell the called places that one call is aborted."""
        self._say_once(instance, ABORT, call.dst, call=call.id, op=call.request[0])

    def take_over(self, hosted: Hosted) -> None:
        """Send messages that were left to a copy that is gone; receivers that have them already ignore them. Messages that are
        for another copy to send are remembered again."""
        unspoken = list(hosted.unspoken)
        hosted.unspoken.clear()
        for said in unspoken:
            self._speak_up(said)

    def say(self, instance: Instance, kind: str, dst: tuple[int, ...], **rest: Any) -> None:
        """Send a message of an instance to those places whose members are not gone, to our own through the inbox."""
        local = self._local
        dst = local.alive_of(dst)
        if not dst:
            return
        members = local.roster.members_at(dst)
        numbers = local.links.number(sorted(members - {local.me}))
        message = local.hosted[instance.place].order.send(
            instance, kind, dst, numbers, view=local.gone, **rest
        )
        local.note(SAID[kind], instance, message)
        local.links.transmit(local.now, message)
        if local.me in members:
            local.inbox.append(message)
        if local.options.announce and kind not in (RESPONSE, COMMIT) and local.is_ordered(message):
            local.links.announce(message.ts, members)

    def _say_once(self, instance: Instance, kind: str, dst: tuple[int, ...], **rest: Any) -> None:
        """Send a message that all copies of the instance would send, if ours is the speaker; else remember it."""
        if self._speaks(instance):
            self.say(instance, kind, dst, **rest)
        else:
            self._local.hosted[instance.place].unspoken.append(Unspoken(instance, kind, dst, rest))

    def _speaks(self, instance: Instance) -> bool:
        """Whether this copy is the speaker of the instance."""
        return self._local.alive_of(instance.copies)[:1] == (instance.place,)

    def _speak_up(self, said: Unspoken) -> None:
        instance, kind, dst, rest = said
        if kind in (SYNCHRONOUS, ASYNCHRONOUS):
            call = instance.calls[rest["call"]]
            if instance.status != RUNNING or call.dropped or not call.missing:
                return
        self._say_once(instance, kind, dst, **rest)


def cut(text: str, room: int) -> str:
    """The text; if it is longer than so many bytes, as many whole characters as fit before a final `CUT`."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= room:
        return text
    end = max(room - len(CUT), 0)
    while end and raw[end] & 0xC0 == 0x80:  # in the middle of a character
        end -= 1
    return raw[:end].decode("utf-8", "surrogatepass") + CUT
