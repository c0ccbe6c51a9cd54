from inga.model.steps import STEPS
from inga.trace import ALIASES, Row, rename


def row(pos: int, step: str, src: int | None = None, seq: int | None = None) -> Row:
    return Row(process=2, pos=pos, time=0, step=step, view=1, src=src, seq=seq)


def test_aliases_are_of_steps_we_write() -> None:
    assert set(ALIASES) == {"dewan", "co", "sco", "obg", "remiop"}
    for names in ALIASES.values():
        assert set(names) <= STEPS


def test_the_lecture_buffers_every_message() -> None:
    rows = [
        row(1, "receive", 1, 1),
        row(2, "hold", 1, 1),
        row(3, "receive", 0, 1),
        row(4, "deliver", 0, 1),
        row(5, "deliver", 1, 1),
        row(6, "take", 0, 1),
    ]
    leaves = (
        "VectorTimeStampedMessageRemovedFromBuffer",
        "RemoteCountIncrementedInSiteVectorTimeStamp",
        "VectorTimeStampedMessageDelivered",
    )
    assert [names for _, names in rename(rows, "dewan")] == [
        ("VectorTimeStampedMessageReceived",),
        ("VectorTimeStampedMessageBuffered",),
        ("VectorTimeStampedMessageReceived",),
        ("VectorTimeStampedMessageBuffered", *leaves),
        leaves,
        ("take",),
    ]


def test_an_echo_was_never_in_the_buffer() -> None:
    assert [names for _, names in rename([row(1, "deliver", 2, 1)], "dewan")] == [
        ("VectorTimeStampedMessageDelivered",)
    ]


def test_other_schemes_have_one_name_each() -> None:
    assert [names for _, names in rename([row(1, "confirm", 0, 1), row(2, "deliver", 0, 1)], "co")] == [
        ("pre-acknowledged",),
        ("deliver",),
    ]
