"""The meaning of each source's letters and words, for readers who have not read it: by experiment, then by term.

The names are the sources' own, since their claims are quoted with them.
"""

TERMS: dict[str, dict[str, str]] = {
    "co": {
        "n": "members of the group",
        "R": "what a packet takes from one member to another, the same everywhere unless delays are called unequal",
        "W": "the window: how many of its messages a member may have sent that are not acknowledged yet",
        "accepted": "a member has the message, and all that its sender had sent before",
        "confirmed": "a member knows that all members have accepted it",
        "acknowledged": "a member knows that all members know that",
        "remote, own": "messages of others, and those that a member has sent itself",
        "printed, eager": "whether a member counts on what it knows of itself only when its own packet tells so, as the paper's rules "
        "do, or at once, as this program does",
    },
    "sco": {
        "n, d": "members of the group, and those of them that a message goes to; n is 10 unless told otherwise",
        "C0": "sender-led: each destination answers the sender, which tells all of them when it has heard from all",
        "D0": "direct: each destination tells all the others",
        "C1, D1": "the same, but news waits for a data message that can carry it, at most k time units; D1 is what SCO does",
        "F0, F1": "one process leads all messages, answered at once or waiting as in D1: what section 4 compares with, where it is measured",
        "k": "how long news may wait, in time units; each member sends one message in each of them",
        "PDU": "a copy of a packet to one receiver, data or news; N(d) and D(d) are how many of them a message takes",
        "delay": "from sending until a destination knows that all have the message; a PDU takes 4 time units",
        "CBCAST": "causal order by vector clocks, as in ISIS; here the order called vector",
        "levels": "what a member may know of a message: that it came (simple), with all before it of its sender (continuous), with all "
        "that precedes it (causal), and that this is so at all destinations (atomic)",
    },
    "obg": {
        "n": "objects, each of which asks others for methods",
        "compatible": "two methods are if they may be executed in either order; otherwise they conflict",
        "methods, pairs": "what the share means that is compatible: whole methods that conflict with nothing, or pairs of methods",
        "wait, delay": "from the receipt of a request until it starts, and from its sending; a copy travels 1 to 9 time units",
        "object, causal, total": "orders: of what conflicts, of what precedes, of everything",
        "literal, significant": "object order as its definition reads, and what of it matters to a destination",
    },
    "remiop": {
        "MIOP": "CORBA's multicast of requests, which repairs nothing; ReMIOP adds a rate and repair",
        "sockets": "the same message as bare datagrams, without CORBA",
        "Rmax, Rmin": "the highest and the lowest rate of a sender, in Kbit/s; here Rmin is half of Rmax",
        "NACK": "a request to send a packet again",
        "round trip": "from the sending of a message until all answers to it have come",
        "narrow path": "a network that was made slow, with a short queue, so that it loses what is sent too fast",
    },
}
