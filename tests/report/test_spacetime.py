"""Small space-time pictures: what is asked for is drawn, nothing covers anything, and text stays text."""

from xml.etree import ElementTree

from inga.report.spacetime import LEFT, Bar, Copy, Diagram, Dot, _Frame, _slots, draw, draw_sign

SVG = "{http://www.w3.org/2000/svg}"


def lunch(**more: object) -> Diagram:
    """Copies to the second and the third lane, exactly in a line."""
    dots = [Dot(0, 0, "1", "send"), Dot(1, 1, "1", "deliver"), Dot(2, 2, "1", "deliver")]
    copies = [Copy(0, 0, 1, 1), Copy(0, 0, 2, 2)]
    return Diagram(["a", "b", "c"], 3, "lunch", dots, copies, **more)  # type: ignore[arg-type]


def ways(diagram: Diagram) -> list[str]:
    root = ElementTree.fromstring(draw(diagram, alone=True))
    return [path.get("d", "") for path in root.iter(f"{SVG}path")]


def is_straight(way: str) -> bool:
    """Whether the point it is drawn towards lies in the middle of where it begins and ends."""
    numbers = [float(word) for word in way.replace("M", " ").replace("Q", " ").split()]
    x, y, over_x, over_y, to_x, to_y = numbers
    return abs((to_x - x) * (over_y - y) - (to_y - y) * (over_x - x)) < 50


def test_it_is_an_image_that_stands_alone() -> None:
    text = draw(lunch(), alone=True)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title").text == "lunch"  # type: ignore[union-attr]
    assert "--ink: #1d2433" in text and "prefers-color-scheme: dark" in text
    assert "<style>" not in draw(lunch()), "inside a page the page has the style"


def test_an_arrow_does_not_seem_to_pass_through_somebody_else() -> None:
    first, second = ways(lunch())
    assert is_straight(first)
    assert not is_straight(second), "it would look as if b had passed the message on"
    aside = lunch()
    aside.dots[1] = Dot(1, 2, "1", "deliver")
    aside.copies[0] = Copy(0, 0, 1, 2)
    assert all(map(is_straight, ways(aside)))


def test_bars_make_room_for_each_other_and_for_dots() -> None:
    long, short = Bar(2, 0, None, "1", "blocked", "for ever"), Bar(2, 1, None, "2", "blocked", "for ever")
    apart = Bar(1, 5, 6, "3", "held", "held")
    slots = _slots(Diagram(["a", "b", "c"], 8, "", bars=[short, long, apart]))
    assert (slots[long], slots[short], slots[apart]) == (0, 1, 0)
    covered = Diagram(["a"], 8, "", [Dot(0, 3, "1", "deliver")], bars=[Bar(0, 1, 5, "2", "held", "held")])
    assert list(_slots(covered).values()) == [1]
    noted = Diagram(
        ["a"], 8, "", [Dot(0, 3, "1", "early", "before 2!")], bars=[Bar(0, 1, 5, "2", "held", "")]
    )
    assert list(_slots(noted).values()) == [2], "a note hangs beneath the dot"


def test_words_only_where_there_is_room() -> None:
    short = draw(Diagram(["a"], 8, "", bars=[Bar(0, 1, 2, "2", "held", "held up for long")]))
    assert "held up" not in short
    assert "held up" in draw(Diagram(["a"], 8, "", bars=[Bar(0, 1, 7, "2", "held", "held up for long")]))


def test_lanes_with_more_bars_are_wider() -> None:
    bars = [Bar(0, 1, None, str(n), "blocked", "") for n in range(3)]
    assert _Frame(Diagram(["a", "b"], 8, "", bars=bars)).height > _Frame(Diagram(["a", "b"], 8, "")).height


def test_text_stays_text() -> None:
    bad = "</text><script>alert(1)</script>&"
    diagram = Diagram(
        [bad], 4, bad, [Dot(0, 0, bad, "send", bad)], [], [Bar(0, 1, 40, bad, "held", bad)], [((bad,), True)]
    )
    root = ElementTree.fromstring(draw(diagram, alone=True))
    assert not list(root.iter(f"{SVG}script"))
    assert sum(text.text == bad for text in root.iter(f"{SVG}text")) >= 5


def test_a_sign_is_a_piece_without_names() -> None:
    sign = draw_sign(Diagram(["alice"], 1, "", [Dot(0, 0, "1", "send")]))
    assert "alice" not in sign and 'class="dot send"' in sign
    assert f'viewBox="{LEFT + 8} ' in sign
