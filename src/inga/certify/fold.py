"""Merge the summaries of many chunks of a process into one, a *fold*, for a watcher that follows a trace for months.

What a chunk passes on to later chunks, and what it adds to the sums, is in vectors that can be joined. Where its rows are
cannot be joined: of a fold only all segments together could be read again. So a fold is never judged. Its chunks were judged
before, and the caller that folds them remembers the number of their violations.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np

from inga.certify.chunk import Ints
from inga.certify.combine import Line, PlacedChunk
from inga.certify.scan import Summary, Tally


class Folded(Exception):
    """Rows are requested of segments of which only the fold of their summaries is known."""


def fold(one: Summary, other: Summary) -> Summary:
    """Merge two summaries of a process; `other` follows `one`."""
    tallies: dict[int, Tally] = deepcopy(one.tallies)
    for view, tally in other.tallies.items():
        tallies.setdefault(view, Tally.empty(len(tally.delivered))).add(tally)
    first = (
        (one.first_send, one.first_seq, one.first_deps, one.first_known)
        if one.first_send
        else (other.first_send, other.first_seq, other.first_deps, np.maximum(one.known, other.first_known))
    )
    return Summary(
        process=one.process,
        first=one.first if one.events else other.first,
        events=one.events + other.events,
        sends=one.sends + other.sends,
        deliveries=one.deliveries + other.deliveries,
        payloads=one.payloads + other.payloads,
        width=max(one.width, other.width),
        left=one.left or other.left,
        settled=one.settled or other.settled,
        crashed=one.crashed or other.crashed,
        flushed=max(one.flushed, other.flushed),
        unstamped_deliveries=one.unstamped_deliveries + other.unstamped_deliveries,
        unstamped_known=one.unstamped_known + other.unstamped_known,
        required=np.maximum(one.required, other.required),
        delivered_low=np.minimum(one.delivered_low, other.delivered_low),
        delivered_high=np.maximum(one.delivered_high, other.delivered_high),
        known=np.maximum(one.known, other.known),
        received_high=np.maximum(one.received_high, other.received_high),
        sent_low=min(one.sent_low, other.sent_low),
        sent_high=max(one.sent_high, other.sent_high),
        repeats=one.repeats or other.repeats or other.sent_low <= one.sent_high,
        first_send=first[0],
        first_seq=first[1],
        first_deps=first[2],
        first_known=first[3],
        late_causal=0,
        late_fifo=0,
        wrong_stamps=0,
        confirms=one.confirms + other.confirms,
        chatter=one.chatter + other.chatter,
        chatter_last=max(one.chatter_last, other.chatter_last),
        progress_last=max(one.progress_last, other.progress_last),
        time_low=min(one.time_low, other.time_low),
        time_high=max(one.time_high, other.time_high),
        unstamped_events=one.unstamped_events + other.unstamped_events,
        views=(*one.views, *other.views),
        starts=one.starts + other.starts,
        started_high=np.maximum(one.started_high, other.started_high),
        requested_low=min(one.requested_low, other.requested_low),
        requested_high=max(one.requested_high, other.requested_high),
        echoed_ahead=max(one.echoed_ahead, other.echoed_ahead if other.echoed_ahead > one.sent_high else 0),
        labels=_joined_labels(one.labels, other.labels),
        tallies=tallies,
        segments=one.segments + other.segments,
        settled_high=np.maximum(one.settled_high, other.settled_high),
    )


def _joined_labels(one: Ints, other: Ints) -> Ints:
    """Join labels: rows after the last view row of one, and rows before the first view row of the other, are in the same view."""
    between = min(one[-1, 0], other[0, 0]), max(one[-1, 1], other[0, 1])
    return np.vstack([one[:-1], [between], other[1:]])


def old_chunks(line: Line, kept: int) -> Line:
    """The chunks of a line to fold: all but the last `kept`; none if that is a single chunk."""
    found = line[: max(len(line) - kept, 0)]
    return found if len(found) > 1 else []


def folded(links: Sequence[PlacedChunk], sent: Ints) -> Summary:
    """The fold of these chunks, given how many messages each source is known to have sent."""
    summaries = [_settled(link.summary, sent) for link in links]
    whole = summaries[0]
    for summary in summaries[1:]:
        whole = fold(whole, summary)
    return whole


def _settled(summary: Summary, sent: Ints) -> Summary:
    """Limit the highest delivered numbers to those that were sent: a wrong one above must not make `forgotten` skip all below it."""
    high = np.minimum(summary.delivered_high, sent) if summary.segments == 1 else summary.settled_high
    return replace(summary, settled_high=high)


def forgotten(lines: Sequence[Line], source: int) -> int:
    """The highest number of a source of which a row is in a fold: a send, or a delivery at some process."""
    folds = [link.summary for line in lines for link in line if link.summary.segments > 1]
    sent = (summary.sent_high for summary in folds if summary.process == source)
    return max([0, *sent, *(int(summary.settled_high[source]) for summary in folds)])
