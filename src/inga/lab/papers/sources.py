"""The five sources, and the reading of each of their claims: how it is judged, and with which tolerance.

A test checks that every claim has a reading here, and every reading a claim. If a reading is missing all the same, the page says so
instead of failing, since that would waste half an hour of experiments.
"""

from typing import NamedTuple

EXACT = "exact"
UNTOLD = "not told"


class ClaimReading(NamedTuple):
    """How a claim is judged."""

    how: str
    tolerance: str


class PaperSource(NamedTuple):
    """A paper or a lecture, and the experiment that repeats it."""

    name: str  # of the experiment
    title: str
    citation: str
    idea: str
    publishes: str  # which of its results are repeated here, and which are not
    readings: dict[str, ClaimReading]  # by the id of the claim; "" is for all claims without one of their own

    def reading(self, claim: str) -> ClaimReading:
        """Return how a claim is judged."""
        return self.readings.get(claim) or self.readings.get("", ClaimReading(UNTOLD, UNTOLD))


_PLAYED = ClaimReading(
    "the schedule of the counterexample is played, event by event, under the weaker scheme, which has to break in the way that is "
    "told, and under the right rule, which has to be clean",
    EXACT,
)

_STEADY = "steady rounds of simulated members, one-way delay R everywhere, at every group size: least and most of all messages"

_COSTS = "{} for each request, against causal order by matrices, wherever anything is compatible"

_SOMEWHERE = "holds if everywhere, roughly if somewhere; 1 % is no difference"

_THEOREMS = {
    "theorem 1": "the order in which conflicting requests start at several objects, in random runs of the delivery procedure {}",
    "theorem 2": "all pairs of messages of random runs: what vectors say, {}, beside what happened before what",
    "theorem 3": "conflicting requests, and answers and data for one instance, of random runs: what the rule says, {}, beside what precedes what",
    "theorem 4": "the same pairs, as they were delivered in random runs of the procedure {}; every run has to end",
}

_WORKED = "the example is played by the order of the product, and its counters are written as identifiers"

_DELAYS = "delay from receipt and from sending, as the paper does not say which; the better of both counts"

_CLOSE = "holds within 5 % of the published number, roughly within 15 %"

SOURCES = (
    PaperSource(
        "ladder",
        "Causality, a lecture",
        'Dewan, "Causality", lecture notes',
        "Why a message needs a vector: every weaker stamp, and the schedule that breaks it.",
        "Thirty counterexamples and claims. All of them are played.",
        {"": _PLAYED},
    ),
    PaperSource(
        "co",
        "CO: causal broadcast by sequence numbers",
        "Sakamoto, Nakamura, Tachikawa and Takizawa, 1995",
        "One vector of expected numbers orders messages, reveals loss and confirms receipt.",
        "Stages in units of R, the bound 2nW, Figure 7 (processing time and delay) and the size of the header. The worked "
        "examples of the protocol are scenarios of the tests.",
        {
            "confirmed": ClaimReading(_STEADY, EXACT),
            "acknowledged": ClaimReading(_STEADY, EXACT),
            "own confirmed": ClaimReading(
                "the paper speaks of messages of others; what a member knows of its own is derived from the rules, and measured",
                EXACT,
            ),
            "own acknowledged": ClaimReading("the same", EXACT),
            "buffer, equal": ClaimReading(
                "messages of others received between acceptance and acknowledgement, windows always full, equal delays: the most",
                "holds up to 2nW, roughly up to 1.25 of it",
            ),
            "buffer, unequal": ClaimReading(
                "the same with one-way delays from R/10 to R, of which the paper does not speak",
                "holds up to 2nW, roughly up to 1.25 of it",
            ),
            "processing": ClaimReading(
                "CPU of the protocol alone, for one message at one member; the largest group against the smallest. "
                "The paper's microseconds are those of a machine of 1994 and are not compared",
                "holds if it grows no faster than the members, roughly up to 1.5 times as fast",
            ),
            "header": ClaimReading(
                "mean bytes of a data packet besides its message; 84 B for n = 8 is read as 20 + 8n, which they may not exceed",
                "holds within 5 % of the published number, roughly below it",
            ),
            "theorem 1": ClaimReading(
                "all pairs of messages of random runs under loss, acceptance as printed, against what really precedes what",
                EXACT,
            ),
            "theorem 1, corrected": ClaimReading(
                "the same where acceptance waits for what a message names", EXACT
            ),
            "theorem 2": ClaimReading(
                "pairs in which vectors do not rise along precedence: some are seen, and in each a message is lost",
                EXACT,
            ),
            "sending": ClaimReading(
                "packets for each message, data and confirmations, where all talk: by the printed rule and at every receipt, the largest group "
                "against the smallest",
                "holds if they grow by at most a quarter, and at every receipt at least half as fast as the members",
            ),
            "sending, ours": ClaimReading(
                "the same by the rule of the product, for one that talks and for all", EXACT
            ),
            "establishment": ClaimReading(
                "our reconstruction, two rounds of openings: what members know, and what reaches those that do not yet, under loss",
                EXACT,
            ),
            "services": ClaimReading(
                "random runs of the least protocols for each; the paper orders messages at all destinations, and a sender is none of its own",
                "holds if each keeps its own order everywhere and breaks the others somewhere",
            ),
        },
    ),
    PaperSource(
        "sco",
        "SCO: causal order for messages to some",
        "Tachikawa and Takizawa, Selective causally ordered group communication",
        "Four ways to confirm a message to some of a group: sender-led or direct, at once or waiting for company.",
        "Figures 5 to 8, and what section 4 says about them. The figures have no numbers in print that could be read to "
        "more than a tenth; the prose has, and its sentences do not all fit one reading.",
        {
            "levels": ClaimReading(
                "a run of each: whether lost messages are asked for by the order's own numbers, whether those have holes where messages go to "
                "some, and whether others than the sender learn what is confirmed",
                EXACT,
            ),
            "implications": ClaimReading(
                "moments of random runs under loss at which a level was said, and whether what it implies was so",
                "exact, and each level has to be told apart from the next one somewhere",
            ),
            "rounds": ClaimReading("PDUs and rounds of C0 and D0, in which nothing is random", EXACT),
            "squares": ClaimReading(
                "d² are the confirmations; with the copies of the data it is d² + d, and the paper counts the copies elsewhere",
                "roughly, as the two counts differ",
            ),
            "deferral": ClaimReading("C1 and D1 at d = 5, from each k to the next", EXACT),
            "ranks": ClaimReading(
                "PDUs and delays of the four at k = 4, for d = 1 to 9",
                "differences below 1 % are none; holds for every d, roughly for seven of them",
            ),
            "fewer": ClaimReading("D1 against C0 and D0 at every k and d", EXACT),
            "near": ClaimReading("1 - C1/D1 in PDUs at k = 4, for d = 3 to 8: the most", EXACT),
            "twice": ClaimReading(_DELAYS, _CLOSE),
            "below-C1": ClaimReading(_DELAYS, _CLOSE),
            "below-C0": ClaimReading(_DELAYS, _CLOSE),
            "above-D0": ClaimReading(_DELAYS, "holds up to 20 % above, roughly up to 23 %"),
            "controller": ClaimReading(
                "PDUs and rounds where one process leads all messages, which Figure 3 does not draw; nothing is random",
                "roughly, as a message first has to get to the controller",
            ),
            "than-controller": ClaimReading(
                "D1 against that controller, answering at once (F0) and waiting as D1 does (F1), at every k and d",
                "holds if fewer PDUs and less delay than both everywhere, roughly if so for F0, and less delay for F1",
            ),
            "rates": ClaimReading(
                "a = 1, 2 and 4 messages of each member a unit, d = 5, k = 4; the paper's figures have a = 1",
                "exact, and at most 20 % above D0 from a = 2 on",
            ),
        },
    ),
    PaperSource(
        "obg",
        "OBG: order between objects",
        "Timura, Tanaka and Takizawa, Group Protocol for Supporting Object-based Ordered Delivery",
        "Only requests that conflict need an order; the others start when they come.",
        "It has no evaluation, only sentences: less to order, less communication, computation and delay. The loads are ours. Theorems 1 to 4 "
        "are tried on random runs, Figures 3 and 4 and Table 2 are played. The cells of Table 1 are missing in our copy; they are worked out from the runs.",
        {
            "fewer": ClaimReading(
                "share of some pairs of requests that start in one order at a common destination, whichever of the two comes first, at every "
                "share of what is compatible, none included",
                "holds if everywhere, roughly if somewhere",
            ),
            "communication, causal": ClaimReading(_COSTS.format("packets and bytes"), _SOMEWHERE),
            "communication, total": ClaimReading("the same, against total order", _SOMEWHERE),
            "computation, causal": ClaimReading(
                _COSTS.format("entries of vectors, matrices and heartbeats that receivers look at")
                + "; CPU is not judged",
                _SOMEWHERE,
            ),
            "computation, total": ClaimReading("the same, against total order", _SOMEWHERE),
            "faster, methods": ClaimReading(
                "wait from receipt to start, in proportion: with a share s compatible, at most 1 - s/2 of the wait of total order",
                "holds at every share, roughly at some",
            ),
            "faster, pairs": ClaimReading("the same, if pairs of methods are compatible", "the same"),
            "faster than causal": ClaimReading(
                "wait from receipt to start against causal order, in every case",
                "holds if everywhere, roughly in most cases; 0.2 time units are no difference",
            ),
            "free": ClaimReading("wait where all methods are compatible", EXACT),
            **{
                name + rule: ClaimReading(_THEOREMS[name].format(words), EXACT)
                for name in _THEOREMS
                for rule, words in (("", "as printed"), (", corrected", "as corrected"))
            },
            "data": ClaimReading(
                "pairs of answers and data that one instance takes, in runs of the product's engine to which data messages were added",
                EXACT,
            ),
            "table 1": ClaimReading(
                "pairs of messages at one object by how their instances are related: whether the vectors of the product relate them, and whether "
                "related ones were delivered the other way round",
                "exact; not stated, as the cells are not in our copy",
            ),
            "figure 3": ClaimReading(_WORKED, EXACT),
            "table 2": ClaimReading(_WORKED, EXACT),
            "delta": ClaimReading(
                "members near and far, no announcements, no loss: copies repeated for nothing, and the wait beside that with one delta for the "
                "longest pair",
                "exact; the paper does not say what it gives",
            ),
            "invoking": ClaimReading(
                "wait with and without the option, where two members call",
                "by a fifth, at least; not in the paper, but in our specification",
            ),
        },
    ),
    PaperSource(
        "remiop",
        "ReMIOP: reliable multicast for CORBA",
        "Bessani, Fraga and Lung, Extending the UMIOP Specification for Reliable Multicast in CORBA, 2004",
        "Whoever lacks a packet asks the group, whoever has it sends it again; a rate keeps senders from losing any.",
        "Figure 7: round trips of ReMIOP at five rates, of MIOP and of sockets, by size. Rates up to 100 Kbit/s in virtual time, "
        "the others between processes; all four answers count, that of the asking member among them. The paper's network lost packets where a modern loopback does not: what is said of "
        "loss is measured on a path that is made narrow.",
        {
            "1": ClaimReading(
                "round trips at each rate, for every size of more than one packet: falling from rate to rate",
                EXACT,
            ),
            "2": ClaimReading(
                "losses and NACKs at 10, 50 and 100 Kbit/s on the narrow path, which was chosen to carry 150: that slow senders lose nothing is shown, "
                "not how slow they have to be; round trips where nothing is lost",
                "by construction if nothing is lost and round trips take ten times as long; roughly if less",
            ),
            "3": ClaimReading(
                "(packets - 1) packet times at Rmax and at Rmin, plus 60 ms for processes that wake up late",
                "holds if all round trips are between, roughly if 80 % are",
            ),
            "4": ClaimReading(
                "the shortest round trips of one packet at 1000 Kbit/s and of plain MIOP",
                "holds within 5 % of the paper's 5 ms, roughly if it costs something and no more than that: our machines are faster",
            ),
            "5": ClaimReading(
                "round trips where nothing is lost; losses, NACKs and repairs on the narrow path, rate by rate",
                "holds if all three rise, roughly if losses do",
            ),
            "6": ClaimReading(
                "1000 against 500 Kbit/s on the narrow path, 75 K and more; the path was chosen to carry less than both: that repairs eat up the "
                "higher rate is shown, not from which rate on",
                "by construction from 0.95 times on at every size, roughly at some",
            ),
            "7": ClaimReading(
                "which sizes plain MIOP and sockets bring over the narrow path, whose queue was chosen so that 50 K fit: that there "
                "is such a size is shown, not which",
                "by construction if just those up to 50 K come, roughly with two sizes more or less",
            ),
            "8": ClaimReading(
                "one of four members loses 10 % or 95 % of what is sent to it, Od = 3 or none, views on: who is a member in the end, and when the others "
                "have everything",
                "holds if only the one beyond Od is excluded, and the others have everything within 5 s, and without a bound not",
            ),
        },
    ),
)


def source_of(name: str) -> PaperSource:
    """Return the source that an experiment repeats."""
    return next(source for source in SOURCES if source.name == name)
