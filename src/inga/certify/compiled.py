"""The same scan compiled by numba: one loop over the rows, three times as fast for wide vectors.

Importing this module loads numba; `scan` does so only for chunks that are worth it. What is compiled is kept
in a cache, so that workers load it instead of compiling it again.
"""

from typing import Any

import numba
import numpy as np

from inga.certify import scan as plain
from inga.certify.chunk import DELIVER, GRANT, RECEIPT, SEND, Chunk
from inga.certify.fingerprint import MIX_1, MIX_2, Keys


def scan(chunk: Chunk, keys: Keys, carry: plain.Carry | None = None) -> tuple[plain.Summary, plain.Flags]:
    """Return exactly what `scan_numpy` returns."""
    start = carry or plain.Carry.none(chunk.n)
    summary = plain.describe(chunk)
    flags = plain.Flags(*(np.zeros(len(chunk), np.bool_) for _ in range(3)))
    words = np.empty(len(chunk), np.uint64)
    first = _walk(
        chunk.process, chunk.kind, chunk.src, chunk.seq, chunk.deps, chunk.stamped,
        np.uint64(keys.seq), keys.deps, np.uint64(keys.unstamped), words,
        start.required.copy(), start.delivered.copy(), start.known.copy(), carry is not None,
        summary.required, summary.delivered_low, summary.delivered_high, summary.known,
        summary.received_high, summary.first_known,
        flags.late_causal, flags.late_fifo, flags.wrong_stamp,
    )  # fmt: skip
    if first >= 0:
        summary.first_send, summary.first_seq = int(chunk.pos[first]), int(chunk.seq[first])
        summary.first_deps = chunk.deps[first].astype(np.int64)
    plain.tally(chunk, words, summary)
    plain.count(summary, flags)
    return summary, flags


def _compile(function: Any) -> Any:
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no place for a cache, as when the package is a zip file
        return numba.njit(nogil=True)(function)


@_compile
def _walk(  # type: ignore[no-untyped-def]
    process, kind, src, seq, deps, stamped,
    seq_key, deps_keys, unstamped_key, words,
    required, delivered, known, judge_first,
    required_here, delivered_low, delivered_high, known_here,
    received_high, first_known,
    late_causal, late_fifo, wrong_stamp,
):  # fmt: skip
    n = deps.shape[1]
    first = -1
    for row in range(len(kind)):
        bits, sender, number = kind[row], src[row], seq[row]
        word = np.uint64(number) * seq_key
        for k in range(n):
            word += np.uint64(np.int64(deps[row, k])) * deps_keys[k]
        if not stamped[row]:
            word += unstamped_key
        word = (word ^ (word >> np.uint64(30))) * np.uint64(MIX_1)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(MIX_2)
        words[row] = word ^ (word >> np.uint64(31))

        if bits & DELIVER:
            late_causal[row] = required[sender] >= number
            late_fifo[row] = delivered[sender] > number
            delivered[sender] = max(delivered[sender], number)
            delivered_low[sender] = min(delivered_low[sender], number)
            delivered_high[sender] = max(delivered_high[sender], number)
            for k in range(n):
                required[k] = max(required[k], deps[row, k])
                required_here[k] = max(required_here[k], deps[row, k])
            required[sender] = max(required[sender], number - 1)
            required_here[sender] = max(required_here[sender], number - 1)

        if bits & SEND:
            wrong = number != known[process] + 1
            for k in range(n):
                wrong |= deps[row, k] != known[k]
            if first < 0:
                first = row
                wrong &= judge_first
                first_known[:] = known
            wrong_stamp[row] = wrong and stamped[row]
        elif not (bits & GRANT or (bits & RECEIPT and sender != process)):
            continue
        if bits & RECEIPT:
            received_high[sender] = max(received_high[sender], number)
        for k in range(n):
            known[k] = max(known[k], deps[row, k])
            known_here[k] = max(known_here[k], deps[row, k])
        known[sender] = max(known[sender], number)
        known_here[sender] = max(known_here[sender], number)
    return first
