"""The lowest of every sender, kept as numbers rise, is the lowest."""

from random import Random

import pytest

from inga.causality.knowledge import ALL_RISEN, FIRST, RISEN, SAME, Knowledge


@pytest.mark.parametrize("own_word_counts", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_against_looking_each_time(seed: int, own_word_counts: bool) -> None:
    random = Random(seed)
    n = random.randint(1, 6)
    known = Knowledge(n, lambda sender, reporter: own_word_counts or sender != reporter)
    rows = [[FIRST] * n for _ in range(n)]
    here = set(range(n))

    def lowest(sender: int) -> int:
        counted = [r for r in here if own_word_counts or r != sender]
        return min([rows[sender][r] for r in counted] or [rows[sender][sender]])

    for _ in range(300):
        sender, reporter = random.randrange(n), random.randrange(n)
        if random.random() < 0.01 and len(here) > 1:
            gone = random.choice(sorted(here))
            before = [lowest(s) for s in range(n)]
            here.discard(gone)
            risen = known.forget(gone)
            assert risen == [s for s in range(n) if lowest(s) > before[s]]
        else:
            old = lowest(sender)
            number = rows[sender][reporter] + random.randint(-2, 4)
            answer = known.rise(sender, reporter, number)
            is_higher = number > rows[sender][reporter]
            rows[sender][reporter] = max(rows[sender][reporter], number)
            expected = (ALL_RISEN if lowest(sender) > old else RISEN) if is_higher else SAME
            assert answer == expected
        assert known.rows == rows
        assert known.lowest == [lowest(s) for s in range(n)]
        needed = [r for r in sorted(here) if own_word_counts or r != sender] or [sender]
        asked = random.randint(0, 8)
        assert known.lacking(sender, asked) == [r for r in needed if rows[sender][r] <= asked]
