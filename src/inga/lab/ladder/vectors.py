"""The counterexamples V0 to V28: one table, for the experiment, its page and the tests.

Each entry names the schemes that it breaks, how they break, and the rules under which the same schedule is clean. The schedules
are in the language of `inga.sim.schedule`, the findings in that of `scene.SceneFinding`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inga.lab.ladder.scene import MATRIX, Scene, play_schedule

FOR_SUBSETS = ("history", "vector", MATRIX)
"""The orders that are right for messages to subsets, too."""


@dataclass(frozen=True, slots=True)
class Show:
    """A scheme, a schedule, and what goes wrong. `play`, if given, plays the show under the order that it gets."""

    scheme: str
    schedule: str
    found: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)  # `skew` and `wait` of clocks; `delayed` sends
    flaws: dict[str, Any] = field(default_factory=dict)  # of the board, under the scheme only: `entry`, ...
    label: str = ""  # a name for the show, if not only the scheme is wrong
    play: "Callable[[Show, str], Scene] | None" = None

    @property
    def name(self) -> str:
        return self.label or self.scheme

    def under(self, order: str) -> Scene:
        """Play the schedule under some order, without the flaws."""
        if self.play is not None:
            return self.play(self, order)
        return play_schedule(self.schedule, order, **self.options)

    def broken(self) -> Scene:
        """Play the schedule under the scheme, with the flaws."""
        if self.play is not None:
            return self.play(self, self.scheme)
        return play_schedule(self.schedule, self.scheme, **self.options, **self.flaws)


@dataclass(frozen=True, slots=True)
class LadderVector:
    """One counterexample."""

    id: str
    title: str
    statement: str  # the claim, in a sentence
    published: str  # the outcome, as listed
    why: str  # an explanation for beginners
    shows: tuple[Show, ...]
    right: tuple[str, ...] = ("vector",)


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of the ladder: one or two rungs, and the lesson from them."""

    title: str
    lead: tuple[str, ...]  # paragraphs
    vectors: tuple[LadderVector, ...]
    rule: str = ""  # the lesson
    example: str = ""  # a schedule to show step by step under the right rule


def _each(schemes: str, schedule: str, *found: str) -> tuple[Show, ...]:
    return tuple(Show(scheme, schedule, found) for scheme in schemes.split())


SCHEMES = {
    "none": "Deliver what comes, as it comes.",
    "fifo": "Number per sender; deliver the next number of each sender.",
    "pairwise": "Number per pair of members; deliver the next number from each peer.",
    "realtime": "Stamp: the sender's clock. Deliver by rising stamp when a waiting time has ended.",
    "history-blind": "Stamp: the ids of all known messages. Deliver when all of them are delivered here.",
    "history": "Stamp: the ids of all known messages, and to whom each was sent. Wait for those sent to me.",
    "scalar": "Stamp: one counter. Deliver when it is one above mine, then copy it.",
    "last-sender": "Stamp: the last message I received. Deliver when my count of its sender is equal.",
    "last-sender-atleast": "The same, deliver when my count of its sender is at least as high.",
    "last-sender-own": "The same, and own sends count as “last” too.",
    "strict": "Stamp: a vector. Deliver when one count is one above mine and all others are equal; test the head only.",
    "head-only": "Stamp: a vector, the standard test, but of the head of the buffer only.",
    "at-once-replace": "As strict; but deliver at once what lacks something I know, and take over its vector.",
    "at-once-keep": "As strict; but deliver at once what lacks something I know, and keep my vector.",
    "at-once-count": "Deliver at once what lacks something I know, and count it.",
    "tree": "One vector and buffer for each branch; what follows no branch opens one, at once.",
    "live-vector": "The standard test, but the vector itself is attached instead of a copy.",
    "own-copy": "The standard test, but own messages go through it as well.",
    "released": "The standard rule, but stamps count what lies unread in the queue.",
    "join-resets": "The standard rule, but a notice that somebody has joined puts its count to 0.",
    "join-delta": "The standard rule, but a newcomer is not told what earlier stamps had named.",
    "gate-contiguous": "The standard rule, but with an open gate stamps count only what came without a hole.",
    "gate-unstamped": "The standard rule, but who opens its gate stops stamping as well.",
    "broadcast": "The standard test, but those not addressed get nothing at all.",
    MATRIX: "Count messages per pair of members; wait for those to me that the stamp counts.",
    "vector": "Deliver what is the next of its sender, when everything its stamp names is here.",
}
"""Each scheme, described in a line."""


CHAPTERS = (
    Chapter(
        "The problem: lunch",
        (
            "Alice asks her friends: “Lunch?”. Bob reads it and answers “Yes!”. Cathy's copy of the question takes "
            "the slow way, so the answer is there first. A program that shows messages as they come shows Cathy "
            "an answer to nothing.",
            "A message <i>causes</i> another if whoever sent the second had sent or read the first; so does whatever "
            "caused the first. The promise we are after: <b>nothing is delivered before its cause</b>. In the "
            "pictures each line is a member and time runs to the right. A slanted line is a copy on its way. What a "
            "member delivers is a circle on its line; what it holds back is a bar.",
        ),
        (
            LadderVector(
                "V0",
                "No order at all",
                "Without ordering, two messages of one sender swap.",
                "B: 2 before 1",
                "Alice sends 1 and then 2. The network is free to bring 2 first, and Bob takes what comes.",
                _each("none", "A!1 A!2 2>B", "B: 2 before 1"),
            ),
            LadderVector(
                "V1",
                "The answer before the question",
                "Numbers between pairs of members order conversations of two, not of three.",
                "C: effect 2 before cause 1",
                "This is lunch. Everybody counts messages per peer: 1 is the first from Alice, 2 the first from Bob. "
                "For Cathy both are the first of their sender, and nothing says that 2 has anything to do with 1. "
                "It does not help to number per sender (<code>fifo</code>) instead of per pair.",
                _each("pairwise fifo", "A!1 1>B B!2 2>C", "C: 2 before 1"),
            ),
        ),
        "A number per sender cannot speak about other senders. The stamp has to say what came before.",
    ),
    Chapter(
        "Look at the clock",
        (
            "The first idea: stamp each message with the time it was sent, and deliver by rising stamp. The receiver "
            "cannot know whether something older is still on its way, so it waits for a while.",
        ),
        (
            LadderVector(
                "V2",
                "How long is long enough?",
                "With perfect clocks, a bounded wait still lets an effect pass.",
                "B: 2 before 1",
                "The clocks are perfect here. Bob waits for his time to end, and 1 takes longer than that. Any "
                "waiting time is too short for some delay, and every longer one makes everybody slower.",
                _each("realtime", "A!1 A!2 2>B B.", "B: 2 before 1"),
            ),
            LadderVector(
                "V3",
                "Whose clock?",
                "With one clock ahead, cause and effect are sorted the wrong way round although both arrived.",
                "stamps 11 and 5: C sorts 2 before 1",
                "Alice's clock is ten seconds ahead, so her question says 11 and Bob's answer says 5. Cathy has both "
                "in time, sorts them, and gets it wrong. And even right clocks would order messages that have nothing "
                "to do with each other.",
                (
                    Show(
                        "realtime",
                        "A!1 1>B 1>C B. B!2 2>C C.",
                        ("C: 2 before 1",),
                        {"skew": (10.0, 0.0, 0.0)},
                    ),
                ),
            ),
        ),
        "Time that passes is not the order we mean. What matters is who had read what.",
    ),
    Chapter(
        "Carry everything along",
        (
            "The second idea is exact: each message lists all messages known to its sender. A receiver delivers it "
            "when it has delivered everything on the list. The list grows for ever, so nobody would use it; but it "
            "says what every later stamp has to say in fewer words.",
        ),
        (
            LadderVector(
                "V4",
                "Not addressed to me",
                "A history without destinations blocks on a message to others.",
                "C waits for 1 for ever",
                "1 goes to Bob only, 2 to Cathy only. Cathy finds 1 on the list of 2 and waits for something that will "
                "never come. Each entry has to say to whom it was sent; then the list is exact for any subset.",
                _each("history-blind", "A!1:B A!2:C 1>B 2>C", "C: 2 never"),
                FOR_SUBSETS,
            ),
        ),
        "A stamp is right if it names exactly the causal past. From here on we look for a shorter one.",
    ),
    Chapter(
        "One counter for all",
        (
            "The third idea: one counter per member, raised at each send and copied from each message delivered. A "
            "message is next if its number is one above mine. As long as people speak one after the other, and "
            "everybody hears everything, this is perfect.",
        ),
        (
            LadderVector(
                "V5",
                "Two at once",
                "Two concurrent messages have the same number, and block each other.",
                "both ids are 1: both blocked",
                "Alice and Bob speak at the same time. Both messages are number 1, and both members have counted to 1 "
                "already. Neither is ever next.",
                _each("scalar", "A!1 B!2 1>B 2>A", "A: 2 never", "B: 1 never"),
            ),
            LadderVector(
                "V6",
                "My own message counts as yours",
                "A concurrent own message makes room for an effect without its cause.",
                "B: 2 before 1",
                "Bob's own message 3 brings his counter to 1, so Alice's <i>second</i> message looks like the next. It "
                "does not help if links keep the order: 1 is there, and held.",
                (
                    *_each("scalar", "A!1 A!2 B!3 2>B", "B: 2 before 1", "B: 1 never", "A: 3 never"),
                    *_each("scalar", "A!1 A!2 B!3 1>B 2>B", "B: 2 before 1", "B: 1 never", "A: 3 never"),
                ),
            ),
        ),
        "One number cannot tell whose messages it has counted. We need a number and a name.",
    ),
    Chapter(
        "Name the last one you read",
        (
            "The fourth idea: a message names the last message its sender received, as (sender, count). A receiver "
            "delivers it when it has counted as many from that sender.",
        ),
        (
            LadderVector(
                "V7",
                "What I said myself",
                "Two messages sent in a row carry the same stamp and may swap.",
                "B: 2 before 1",
                "Alice has received nothing, so neither of her messages names anything. The cure is to let own sends "
                "count as “last” too.",
                _each("last-sender last-sender-atleast", "A!1 A!2 2>B", "B: 2 before 1"),
            ),
            LadderVector(
                "V8",
                "Too well informed",
                "A test for equality blocks a receiver that is ahead of the stamp.",
                "3 names (A,1), C counts 2: blocked",
                "Bob answered 1, and says so. When 3 comes to Cathy she has already counted two messages from Alice. "
                "Two is not one, and never will be again. The cure is “at least”.",
                _each("last-sender", "A!1 A!2 1>B B!3 1>C 2>B 2>C 3>A 3>C", "C: 3 never"),
            ),
            LadderVector(
                "V9",
                "Two causes, one name",
                "Of two causes that do not imply each other, only the later one is named.",
                "B: 3 before its cause 1",
                "Cathy has read 1 and then 2 when she sends 3. She names 2, and 1 is forgotten. No repair of the test "
                "can bring it back. The second picture needs two members only: what Bob sent himself is older than "
                "what he received, so it is not named.",
                (
                    *_each(
                        "last-sender-atleast last-sender-own",
                        "A!1 B!2 1>C 2>C C!3 3>B",
                        "B: 3 before 1",
                    ),
                    *_each("last-sender-own", "A!1 B!2 1>B B!3 3>A", "A: 3 before 2"),
                ),
            ),
        ),
        "There can be one open cause per member. So a stamp needs a number for each of them: a vector.",
    ),
    Chapter(
        "A vector, read too strictly",
        (
            "Now each message carries one count per member: how many of that member's messages its sender knew, the "
            "message itself included. With members A, B, C the stamp (2,0,1) on a message of A says: this is A's second "
            "message, and A had read one message of C and none of B. Each member keeps such a vector of what it has delivered and sent.",
            "As printed in the lecture, a message is next if exactly one count is larger than mine, by one, and all "
            "others are <i>equal</i>; and only the head of the sorted buffer is tested.",
        ),
        (
            LadderVector(
                "V10",
                "Equal is too much to ask",
                "The strict successor rejects both messages of a concurrent pair for ever.",
                "stamps (1,0) and (0,1): both blocked",
                "Bob's vector says (0,1) because he has spoken himself. Alice's (1,0) knows nothing of that, and needs "
                "not. Being <i>ahead</i> of a stamp is no reason to wait.",
                _each("strict", "A!1 B!2 1>B 2>A", "A: 2 never", "B: 1 never"),
            ),
            LadderVector(
                "V11",
                "A stale copy at the head",
                "If only the head of the buffer is tested, one duplicate blocks everything.",
                "stale copy of 1 heads the buffer: 2 blocked",
                "The second copy of 1 is no successor of anything any more, sorts before 2, and stays. Duplicates have "
                "to be recognised, and whatever has become deliverable has to be found wherever it waits.",
                _each("head-only at-once-count", "A!1 A!2 1>B 1>>B 2>B", "B: 2 never"),
            ),
        ),
        "The vector says everything. What is left is to read it right.",
    ),
    Chapter(
        "“Concurrent, so deliver it at once”",
        (
            "The strict rule blocks concurrent messages, so it is tempting to let them through: if a stamp lacks "
            "something I know, it is concurrent, and what is concurrent may be delivered at any time. Both halves "
            "are true of two <i>messages</i>. But my vector is not a message: one send of my own makes it "
            "incomparable with everything the others say. <b>Whether the causes are here is another question than "
            "whether the stamps compare.</b>",
        ),
        (
            LadderVector(
                "V12",
                "My own message opens the door",
                "Delivering what is incomparable lets an effect pass before its cause.",
                "B's own 3 makes (2,0) incomparable: 2 before 1",
                "Bob has sent 3, so his vector is (0,1). Alice's second message, (2,0), does not know of that: it is "
                "“concurrent”, and passes. Its cause 1 is still on its way. All variants fail here, whatever they do "
                "with the vector afterwards.",
                _each("at-once-replace at-once-keep at-once-count tree", "A!1 A!2 B!3 2>B", "B: 2 before 1"),
            ),
            LadderVector(
                "V13",
                "The same over orderly links",
                "The same happens when no link ever reorders.",
                "(1,0,1) against (0,1,0): B delivers 3 before 1",
                "Three members are enough. Bob has sent 2; Cathy has read 1 and sends 3, stamped (1,0,1). Bob's vector "
                "is (0,1,0): incomparable, so 3 passes. That it names one message of Alice, which Bob has not seen, "
                "is never looked at.",
                _each(
                    "at-once-replace at-once-keep at-once-count tree",
                    "A!1 B!2 1>C C!3 3>B",
                    "B: 3 before 1",
                ),
            ),
            LadderVector(
                "V14a",
                "Taking over its stamp",
                "Replacing the local vector forgets what was known, and blocks.",
                "4 = (2,1) blocked: A's stamp went back to (0,1)",
                "Bob's vector is replaced by Alice's (1,0): he has forgotten that he has spoken, and numbers 4 as his "
                "first again. Alice's vector goes back to (0,1) likewise, from where (2,1) cannot be reached.",
                _each("at-once-replace", "A!1 A!2 B!3 1>B 2>B B!4 3>A 4>A", "A: 4 never"),
            ),
            LadderVector(
                "V14b",
                "Leaving my own stamp",
                "Leaving the local vector unchanged never lets the successors pass.",
                "2 = (2,0) is held and never passes: blocked",
                "2 came too early and is held. Then 1 is delivered as “concurrent”, but not counted, so 2 never "
                "becomes a successor.",
                _each("at-once-keep", "A!1 A!2 2>B B!3 1>B 3>A", "B: 2 never"),
            ),
            LadderVector(
                "V17",
                "A tree of paths has no merges",
                "In a tree of message paths, a message that follows two leaves succeeds neither.",
                "leaves (1,0),(0,1); 3 = (1,2) succeeds neither: blocked",
                "The lecture's last word is one vector and one buffer for each branch of history. But branches meet "
                "again: Bob has read 1 and sent 2 when he sends 3, so 3 follows both. History is a graph, not a tree.",
                _each("tree", "A!1 B!2 1>B B!3 2>A 3>A", "A: 3 never"),
            ),
        ),
        "Ask one question only: is everything that this stamp names already here?",
    ),
    Chapter(
        "Stamps are values, and own messages are known",
        ("Two mistakes that have nothing to do with the idea, and break it all the same.",),
        (
            LadderVector(
                "V15",
                "A stamp that goes on counting",
                "Attaching the vector itself instead of a copy changes messages that still wait to leave.",
                "both carry (2,0): B blocks on both",
                "Both messages wait before they leave. When they do, the vector they share says (2,0), and nobody ever "
                "sees a (1,0). A stamp is an immutable copy, taken at the send.",
                (
                    Show(
                        "live-vector",
                        "A!1 A!2 A. A.",
                        ("B: 1 never", "B: 2 never"),
                        {"delayed": True},
                    ),
                ),
            ),
            LadderVector(
                "V16",
                "My own copy in my own buffer",
                "Running one's own copy through the receive test blocks the site, with nothing concurrent.",
                "own (1,0) heads A's buffer for ever: 2 = (1,1) blocked",
                "Alice's own message comes back to her. She has counted it when she sent it, so it is no successor; it "
                "stays at the head, and Bob's answer waits behind it. An own message is known the moment it is "
                "stamped.",
                _each("own-copy", "A!1 1>A 1>B B!2 2>A", "A: 2 never"),
            ),
        ),
        "Now the rule can be stated. It is shorter than all of the above.",
    ),
    Chapter(
        "The standard test, with two vectors",
        (
            "<b>On send:</b> count it, and stamp it with a copy of the vector. <b>On receipt</b>, with s its sender: "
            "deliver m when <code>m[s] = V[s] + 1</code> (it is the next of its sender) and <code>m[k] ≤ V[k]</code> "
            "for every other k (everything it names is here). Then <code>V[s] = m[s]</code>. Otherwise hold it. Every "
            "picture on the right of this page is this rule.",
            "Why it is safe: a stamp names all causes, and the test waits for all of them. Why it never blocks: of all "
            "held messages look at one with the smallest sum; its causes have smaller sums, so none of them is held.",
            "Two messages are <i>concurrent</i> if neither caused the other. The test does not care, but an "
            "application might: two people have edited the same line. After a delivery the message's past is part of "
            "ours, so the message is concurrent with something exactly if its sum is smaller than ours.",
        ),
        (
            LadderVector(
                "V26",
                "Delivered, but not read",
                "Stamps from what was released, not taken, claim causes nobody acted on and hide concurrency.",
                "2 = (1,1) claims 1 as its cause; the pair is concurrent, flagged nowhere",
                "1 lies in Bob's queue, unread, when he sends 2. So 1 cannot have caused 2. If stamps count what lies "
                "in the queue, 2 says (1,1): it looks like an answer, and no one learns that Alice and Bob spoke at "
                "the same time. So inga keeps two vectors: what was <i>released</i> decides, what was <i>taken</i> "
                "makes stamps.",
                _each("released", "A!1 1>B B!2 B?1", "A: 2 unflagged", "B: 1 unflagged"),
            ),
        ),
        "Released counts test, taken counts stamp.",
        "A!1 1>B B!2 2>C",
    ),
    Chapter(
        "When not everybody is addressed",
        ("A vector counts broadcasts. A message to some leaves a hole in the counts of all others.",),
        (
            LadderVector(
                "V18",
                "A hole in the counts",
                "With vectors that count broadcasts, a message to some blocks the rest.",
                "C waits for 1 for ever",
                "2 is Alice's second message, and Cathy never got a first. In inga everybody gets the <i>header</i> of "
                "every message, and the body only those it is for: the counts have no holes. Histories with "
                "destinations need no header, and a matrix of counts neither.",
                _each("broadcast", "A!1:B A!2:C 1>B 2>C", "C: 2 never"),
                FOR_SUBSETS,
            ),
        ),
        "One send is one message, one count, one stamp, whoever it is for.",
    ),
    Chapter(
        "Shorter stamps, and members that come and go",
        (
            "A stamp needs to name only the counts that changed since its sender's previous message: whoever has "
            "delivered that one has what it named. These are <i>delta stamps</i>. They, and the counts themselves, "
            "need care when the group changes: a newcomer has no past, and somebody who leaves takes something along.",
        ),
        (
            LadderVector(
                "V19",
                "Starting at zero",
                "A newcomer that starts at zero waits for what was sent before it came.",
                "J waits for 1 for ever",
                "2 is Alice's second message, and the first was never sent to J. Each member has to announce how much "
                "it had sent when J came.",
                (
                    Show(
                        "vector",
                        "A!1 1>B J+ A= B= A!2 2>J",
                        ("C: 2 never",),
                        flaws={"entry": "zero"},
                        label="vector, newcomers start at zero",
                    ),
                ),
            ),
            LadderVector(
                "V20",
                "Starting like somebody else",
                "A newcomer that copies one member's vector waits for ever, or drops what is on its way.",
                "J waits for 1. Copying later loses a message that was also sent to J",
                "What one member has delivered says nothing about what is on its way to another.",
                (
                    Show(
                        "vector",
                        "A!1 J+ A= A!2 2>J B=",
                        ("C: 2 never",),
                        flaws={"entry": "copy"},
                        label="vector, newcomers copy Bob",
                    ),
                    Show(
                        "vector",
                        "J+ A= A!1 1>B B= 1>J",
                        ("C: 1 never",),
                        flaws={"entry": "copy late"},
                        label="vector, newcomers copy Bob, later",
                    ),
                ),
            ),
            LadderVector(
                "V21",
                "A late welcome",
                "A join notice that resets a count blocks the next message of that member.",
                "2 is two ahead: blocked",
                "A count that exists is never put back.",
                (Show("join-resets", "C+ A= B= C!1 1>B B= C!2 2>B", ("B: 2 never",)),),
            ),
            LadderVector(
                "V27",
                "What a delta leaves out",
                "A delta stamp across a join hides a cause from the newcomer.",
                "3 lists no change since 2: J delivers 3 before its cause 1",
                "Deltas rely on the previous message, and the newcomer never got that. So the first message after each "
                "view carries the full vector.",
                (
                    Show(
                        "join-delta",
                        "J+ B= B!1:AJ 1>A A!2:B A= A!3:BJ 3>J",
                        ("C: 3 before 1", "C: 1 unflagged"),
                        options={"eager": True},
                    ),
                ),
            ),
            LadderVector(
                "V22",
                "Gone, and only some have it",
                "After a crash without forwarding, those who lack a message wait for ever.",
                "C waits for 1 for ever",
                "Bob has 1 and Cathy has not, and Alice cannot send it again. Those who stay have to share what they "
                "hold.",
                (
                    Show(
                        "vector",
                        "A!1 1>B A- B!2 2>C",
                        ("C: 2 never",),
                        flaws={"parting": "none"},
                        label="vector, nothing is passed on",
                    ),
                ),
            ),
            LadderVector(
                "V23",
                "Two gone at once",
                "A cut that is only free of gaps keeps a message whose cause is lost.",
                "C keeps 2, 1 is gone: blocked; the closed cut drops 2",
                "What nobody has is lost. Then all that it caused has to go as well, or it blocks.",
                (
                    Show(
                        "vector",
                        "A!1 1>B B!2 2>C A- B-",
                        ("C: 2 never",),
                        flaws={"parting": "gapless"},
                        label="vector, a cut free of gaps",
                    ),
                ),
            ),
            LadderVector(
                "V24",
                "Forgetting a member too early",
                "Dropping a component when its member leaves makes the test blind.",
                "C delivers 2, later 1 is forwarded",
                "As long as something of the departed may still be forwarded, its count has to stay.",
                (
                    Show(
                        "vector",
                        "A!1 1>B A- C= B!2 2>C",
                        ("C: 2 before 1", "C: 2 unflagged"),
                        flaws={"parting": "forgotten"},
                        label="vector, the departed are forgotten",
                    ),
                ),
            ),
        ),
        "Counts begin with what a member announces, and end when all have reached the same cut.",
    ),
    Chapter(
        "Switching order off",
        (
            "A member may wish to see messages as they come, for a while. It must not stop telling others the truth.",
        ),
        (
            LadderVector(
                "V25",
                "Off means no stamps",
                "Switching ordering off locally, stamps included, breaks the order of others.",
                "2 carries (1,0): B delivers 2 before 1",
                "While Alice did not count, she sent 1. Then 2 says that it is her first.",
                (Show("gate-unstamped", "A|open A!1 A|shut A!2 2>B 1>B", ("B: 2 before 1",)),),
            ),
            LadderVector(
                "V28",
                "An open gate that counts without holes",
                "With an open gate, stamps from contiguous counts hide causes that were seen.",
                "3 = (0,1,0) hides its cause 2: C delivers 3 before 2",
                "Bob has read 2, though 1 is missing. His stamp has to name the highest number he has read, or Cathy "
                "cannot wait for it.",
                (Show("gate-contiguous", "B|open A!1 A!2 2>B B!3 3>C", ("C: 3 before 1",)),),
            ),
        ),
        "A member may stop waiting. It may not stop counting.",
    ),
)

VECTORS = {vector.id: vector for chapter in CHAPTERS for vector in chapter.vectors}
