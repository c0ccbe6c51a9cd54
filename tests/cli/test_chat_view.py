"""What a line means, what is remembered, and how it looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.cli.chat_view import MESSAGES_MAX, ChatMessage, ChatView, Do, Say, Transcript, WrongLine, understand
from inga.model.delivery import Batch, Delivery
from inga.model.packet import Packet

MEMBERS = ["alice", "bob", "cathy"]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("hello ", Say("hello")),
        ("  indented", Say("  indented")),
        ("   ", None),
        ("//who", Say("/who")),
        ("@ five", Say("@ five")),
        ("@", Say("@")),
        ("@bob psst  now", Say("psst  now", ("bob",))),
        ("/to bob,cathy,bob table?", Say("table?", ("bob", "cathy"))),
        ("/who", Do("who")),
        (" /quit ", Do("quit")),
        ("/why 12", Do("why", 12)),
        ("/why            12", Do("why", 12)),
        ("/history 5", Do("history", 5)),
    ],
)
def test_lines_are_understood(line: str, meant: object) -> None:
    assert understand(line, "alice", MEMBERS) == meant


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/nonsense", "no command /nonsense"),
        ("/", "no command /"),
        ("@dan hi", "no member 'dan'; there are alice, bob, cathy"),
        ("@alice hi", "that is you"),
        ("@bob", "/to NAME TEXT"),
        ("/to", "/to NAME TEXT"),
        ("/to ,, hi", "/to NAME TEXT"),
        ("/why me", "/why me: see /help"),
        ("/who bob", "/who bob: see /help"),
    ],
)
def test_lines_that_cannot_be_meant(line: str, why: str) -> None:
    meant = understand(line, "alice", MEMBERS)
    assert isinstance(meant, WrongLine)
    assert meant.why.startswith(why)


@given(st.text(alphabet="/@ ,12whyto bob\n\u2028é²"))
def test_no_line_is_too_much(line: str) -> None:
    meant = understand(line, "alice", MEMBERS)
    assert not isinstance(meant, Say) or meant.text


def stamped(message: ChatMessage, src: int, seq: int, *deps: int, view: int = 1) -> ChatMessage:
    message.stamp(delivery(src, seq, *deps, view=view))
    return message


def delivery(src: int, seq: int, *deps: int, view: int = 1) -> Delivery:
    packet = Packet(src, view)
    packet.seq, packet.deps, packet.payloads = seq, deps, [b""]
    return Delivery(Batch(MEMBERS[src], packet), 0)


def test_concurrency_is_found_in_both_directions() -> None:
    transcript = Transcript()
    mine = transcript.add_own("alice", "Lunch?")
    assert transcript.concurrent_with(mine) == []  # not stamped yet
    answer = stamped(transcript.add("bob", "yes"), 1, 1, 1, 0, 0)
    other = stamped(transcript.add("cathy", "hello", concurrent=True), 2, 1, 0, 0, 0)
    transcript.stamped(delivery(0, 1, 0, 0, 0))
    assert transcript.concurrent_with(mine) == [other]
    assert transcript.concurrent_with(answer) == [other]
    assert transcript.concurrent_with(other) == [mine, answer]
    assert transcript.find() is other
    assert transcript.find(2) is answer
    assert transcript.find(9) is None
    assert transcript.to_json()[2]["concurrent_with"] == [1, 2]


def test_messages_of_different_views_are_not_concurrent() -> None:
    """In each view numbers begin anew, and members may have other ones."""
    transcript = Transcript()
    before = stamped(transcript.add("bob", "bye"), 1, 1, 0, 0, 0)
    after = stamped(transcript.add("alice", "he is gone"), 0, 1, 0, 0, view=2)
    other = stamped(transcript.add("cathy", "yes"), 1, 1, 0, 0, view=2)
    assert transcript.concurrent_with(before) == []
    assert transcript.concurrent_with(after) == [other]


def test_only_so_much_is_remembered() -> None:
    transcript = Transcript()
    for _ in range(MESSAGES_MAX + 5):
        transcript.add("bob", "x")
    assert len(transcript.messages) == MESSAGES_MAX
    assert [message.number for message in transcript.last(2)] == [MESSAGES_MAX + 4, MESSAGES_MAX + 5]
    assert transcript.last(0) == []


def test_how_messages_look() -> None:
    view = ChatView(MEMBERS)
    assert view.message(ChatMessage(3, "bob", "yes")) == ["  3   bob> yes"]
    assert view.message(ChatMessage(4, "cathy", "pizza?", concurrent=True)) == ["  4 ‖ cathy> pizza?"]
    assert view.message(ChatMessage(5, "bob", "psst", ("alice", "cathy"))) == [
        "  5   bob → alice, cathy> psst"
    ]
    ascii_only = ChatView(MEMBERS, ascii_only=True)
    assert ascii_only.message(ChatMessage(4, "bob", "a\nb", ("alice",), concurrent=True)) == [
        "  4 || bob -> alice> a",
        "       | b",
    ]
    assert view.note("bob is here") == "* bob is here"


def test_names_that_others_chose_are_text() -> None:
    """Whoever joins later says itself what it is called."""
    view, mallory = ChatView(MEMBERS, colour=True), "\x1b[2Jmallory\n  9   bob"
    (row,) = view.message(ChatMessage(3, mallory, "hi", (mallory,)), columns=200)
    assert row.count(r"\x1b[2Jmallory\n  9   bob") == 2 and "\x1b[2J" not in row
    assert (
        view.note(f"{mallory} is here", "two") == "\x1b[2m* \\x1b[2Jmallory\\n  9   bob is here\n  two\x1b[0m"
    )


def test_no_row_but_the_first_can_look_like_a_message() -> None:
    fake = "  9   bob> I agree"
    view = ChatView(MEMBERS)
    plain = view.message(ChatMessage(1, "cathy", f"hm\n{fake}\r\n* bob has left"))
    assert plain == ["  1   cathy> hm", f"      │ {fake}", "      │ * bob has left"]
    wrapped = view.message(ChatMessage(1, "cathy", "x" + " " * 25 + fake), columns=40)
    assert len(wrapped) > 1
    assert all(row.startswith("      │ ") for row in wrapped[1:])
    assert all(len(row) < 40 for row in wrapped)


def test_long_texts_are_cut() -> None:
    view = ChatView(MEMBERS)
    rows = view.message(ChatMessage(1, "bob", "x" * 5000))
    assert rows[0] == "  1   bob> " + "x" * 2000
    assert rows[1:] == ["      │ … 3,000 more characters"]
    assert len(view.message(ChatMessage(1, "bob", "\n" * 500))) == 21


def test_colours_surround_and_change_nothing_else() -> None:
    row = ChatView(MEMBERS, colour=True).message(ChatMessage(1, "bob", "hi", concurrent=True))[0]
    assert row == "\x1b[2m  1\x1b[0m \x1b[1;33m‖\x1b[0m \x1b[33mbob\x1b[0m> hi"
