"""The cut that survivors agree on: free of gaps, and closed under causes."""

from inga.causality.cut import closed_cut, gapless_cut


def test_what_is_released_is_kept() -> None:
    assert closed_cut({0: 3}, {}) == {0: 3}


def test_what_is_held_without_a_hole_is_kept() -> None:
    assert closed_cut({0: 1}, {(0, 2): (1, 0), (0, 3): (2, 0), (0, 5): (4, 0)}) == {0: 3}


def test_a_message_goes_with_its_lost_cause() -> None:
    """V23: B's 1 names A's 1, which nobody has."""
    released, held = {0: 0, 1: 0}, {(1, 1): (1, 0, 0)}
    assert gapless_cut(released, held) == {0: 0, 1: 1}
    assert closed_cut(released, held) == {0: 0, 1: 0}


def test_one_goes_after_the_other() -> None:
    """C's 1 needs B's 1, which needs A's 2, which is gone."""
    held = {(0, 1): (0, 0, 0), (1, 1): (2, 0, 0), (2, 1): (1, 1, 0), (2, 2): (1, 1, 1)}
    assert closed_cut({0: 0, 1: 0, 2: 0}, held) == {0: 1, 1: 0, 2: 0}


def test_what_survivors_sent_is_never_lost() -> None:
    assert closed_cut({0: 0}, {(0, 1): (0, 7, 9)}) == {0: 1}
