"""What others wrote, on one line and without power over a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("alice", "alice"),
        ("Łukasz 李 🙂", "Łukasz 李 🙂"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("bob\nERROR forged\r", r"bob\nERROR forged\r"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\u202eevil\u2028", r"\u202eevil\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(alphabet=st.characters()))
def test_whatever_it_is(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode()
