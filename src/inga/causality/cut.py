"""The packets of departed members that survivors keep: the largest cut in which no packet lacks a cause.

The last packets of a departed member may have reached only some of the survivors. These pool the packets of it that they hold. A packet
that no survivor holds is lost, and with it all packets of departed members that causally follow it. Packets that survivors sent
themselves are never lost.
"""

from collections.abc import Mapping

from inga.model.stamp import Deps


def gapless_cut(released: Mapping[int, int], held: Mapping[tuple[int, int], Deps]) -> dict[int, int]:
    """For each departed sender, how many of its packets the survivors have together, up to the first gap.

    `released`: for each departed sender, the highest number that any survivor has released. `held`: the causal pasts of packets
    that survivors hold beyond that, by sender and number.
    """
    cut = dict(released)
    for sender in cut:
        while (sender, cut[sender] + 1) in held:
            cut[sender] += 1
    return cut


def closed_cut(released: Mapping[int, int], held: Mapping[tuple[int, int], Deps]) -> dict[int, int]:
    """The gapless cut, lowered until no packet in it names a packet of a departed sender outside of it.

    A packet that some member has released has all its causes at that member, so only held packets can be removed.
    """
    cut = gapless_cut(released, held)
    lowered = True
    while lowered:
        lowered = False
        for sender, last in cut.items():
            if last > released[sender] and _lacks_a_cause(held[sender, last], sender, cut):
                cut[sender] = last - 1
                lowered = True
    return cut


def _lacks_a_cause(deps: Deps, sender: int, cut: Mapping[int, int]) -> bool:
    return any(count > cut[k] for k, count in enumerate(deps) if k in cut and k != sender)
