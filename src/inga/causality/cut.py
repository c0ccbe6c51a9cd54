"""What survivors keep of members that are gone: the largest cut in which nothing lacks its cause.

A member that goes may have reached only some of the others. They pool what they hold of it; what nobody
holds is lost, and so is all that it caused, from whoever else is gone. What survivors sent themselves is
never lost.
"""

from collections.abc import Mapping

from inga.model.stamp import Deps


def gapless_cut(released: Mapping[int, int], held: Mapping[tuple[int, int], Deps]) -> dict[int, int]:
    """For each departed sender, how many of its packets somebody has, without a hole.

    `released`: the most that any survivor has released; `held`: the pasts of those that are held beyond.
    """
    cut = dict(released)
    for sender in cut:
        while (sender, cut[sender] + 1) in held:
            cut[sender] += 1
    return cut


def closed_cut(released: Mapping[int, int], held: Mapping[tuple[int, int], Deps]) -> dict[int, int]:
    """The same, lowered until no packet in it names one of a departed sender outside of it.

    What is released somewhere has all its causes there, so only held packets can be too many.
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
