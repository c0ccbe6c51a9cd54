"""The line editor and the text it shows, key by key."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.cli.chat_line import LINE_MAX, Editor, Signal
from inga.cli.chat_text import MARKS_MAX, fitting, harmless, shorten, width_of, wrap
from inga.cli.chat_view import completions

LEFT, RIGHT, UP, DOWN, HOME, END, DELETE = (f"\x1b[{key}" for key in ("D", "C", "A", "B", "H", "F", "3~"))
PASTE, PASTED = "\x1b[200~", "\x1b[201~"


def typed(*keys: str, editor: Editor | None = None) -> Editor:
    editor = editor or Editor()
    for key in keys:
        editor.feed(key.encode())
    return editor


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        ("abc", "abc", 3),
        (f"ac{LEFT}b", "abc", 2),
        (f"bc{HOME}a{END}d", "abcd", 4),
        ("bc\x01a\x05d", "abcd", 4),
        ("abx\x7fc", "abc", 3),
        (f"axbc{LEFT * 3}{DELETE}", "abc", 1),
        (f"abc{LEFT}\x04", "ab", 2),
        (f"{LEFT}{RIGHT}\x7f{DELETE}a", "a", 1),
        ("one two three\x17", "one two ", 8),
        ("one two three\x1bb\x1bb\x0b", "one ", 4),
        ("one two\x1bb\x15", "two", 0),
        ("one two\x15\x19 \x19", "one two one two", 15),
        ("one two\x01\x1bf!", "one! two", 4),
        ("日本語\x7f", "日本", 2),
        ("e\u0301\x7fx", "x", 1),
        ("👩\u200d🔬!" + LEFT * 2 + DELETE, "!", 0),
        ("a\x1b[99;99~\x1bOZ\x1b[5~b", "ab", 2),
        ("a\x00\x07\x1cb", "ab", 2),
        (f"a{PASTE}x\r\ny\tz\x1b[A\x03{PASTED}b", "ax\ny    z[Ab", 12),
    ],
)
def test_keys(keys: str, text: str, cursor: int) -> None:
    whole, bytewise = typed(keys), Editor()
    for byte in keys.encode():
        bytewise.feed(bytes([byte]))
    for editor in (whole, bytewise):
        assert (editor.text, editor.cursor) == (text, cursor)


def test_lines_come_out_and_the_rest_stays() -> None:
    editor = Editor()
    assert editor.feed(b"one\rtwo\nthr") == ["one", "two"]
    assert editor.text == "thr"


def test_the_input_ends_only_in_an_empty_line() -> None:
    editor = Editor()
    assert editor.feed(b"a\x04") == []
    assert editor.feed(b"\x7f\x04") == [Signal.END]
    assert editor.feed(b"\x0c") == [Signal.CLEAR]


def test_earlier_lines_come_back_and_the_draft_is_kept() -> None:
    editor = typed("one\r", "two\r", "two\r", " \r", "dra", editor=Editor(["zero"]))
    seen = [typed(key, editor=editor).text for key in (UP, UP, UP, UP, DOWN, DOWN, DOWN, DOWN)]
    assert seen == ["two", "one", "zero", "zero", "one", "two", "dra", "dra"]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("/wh\t", "/wh"),
        ("/who\t", "/who "),
        ("/hi\t", "/history "),
        ("@b\t", "@bob "),
        ("@\t", "@"),
        ("/to c\thi", "/to cathy hi"),
        ("hello b\t", "hello b"),
    ],
)
def test_tab_completes(keys: str, text: str) -> None:
    editor = Editor(complete=lambda before: completions(before, ["bob", "cathy"]))
    assert typed(keys, editor=editor).text == text


def test_a_line_is_bounded() -> None:
    editor = typed(PASTE + "x" * (LINE_MAX + 10) + PASTED + "y")
    assert len(editor.text) == LINE_MAX


@given(st.text(max_size=80), st.integers(0, 80), st.integers(8, 40))
def test_the_cursor_is_always_in_view(text: str, left: int, columns: int) -> None:
    editor = typed(PASTE + text.replace("\x1b", "") + PASTED, LEFT * left)
    shown, cursor = editor.view(columns)
    assert "\n" not in shown
    assert cursor <= width_of(shown) < columns


@given(
    st.lists(st.one_of(st.text(max_size=5), st.sampled_from([LEFT, RIGHT, UP, DOWN, "\x7f", "\x17", "\r"])))
)
def test_whatever_is_typed_the_cursor_stays_in_the_line(keys: list[str]) -> None:
    editor = typed(*keys)
    assert 0 <= editor.cursor <= len(editor.text)


# Text


@given(st.text())
def test_nothing_harmful_remains(text: str) -> None:
    shown = harmless(text)
    for char in shown.replace("\n", ""):
        assert char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert harmless(shown) == shown


def test_what_is_harmful_is_made_visible() -> None:
    assert harmless("a\x1b[2Jb\x07\x7f") == "a␛[2Jb␇␡"
    assert harmless("\x9b31m\u202egnp.exe\u2066") == "<U+009B>31m<U+202E>gnp.exe<U+2066>"
    assert harmless("one\r\ntwo\rthree\u2028four") == "one\ntwo\nthree\nfour"
    assert harmless("שלום, 日本語 👩\u200d🔬 e\u0301") == "שלום, 日本語 👩\u200d🔬 e\u0301"
    assert harmless("e" + "\u0301" * 100) == "e" + "\u0301" * MARKS_MAX


@given(st.text(alphabet="ab 日e\u0301\n", max_size=60), st.integers(2, 12))
def test_wrapped_rows_fit_and_lose_nothing(text: str, columns: int) -> None:
    rows = wrap(text, columns)
    assert all(width_of(row) <= columns for row in rows)
    assert [char for row in rows for char in row if not char.isspace()] == [
        c for c in text if not c.isspace()
    ]


def test_shortening() -> None:
    assert shorten("abcdef", 4, 9) == ("abcd", 2)
    assert shorten("a\nb\nc", 99, 2) == ("a\nb", 2)
    assert shorten("ab", 2, 1) == ("ab", 0)
    assert fitting("日本語", 5) == 2
    assert fitting("日", 1) == 1
