"""What a group's objects are, and what follows from that: places, processes of a trace, conflicts."""

from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.model.invocation import ANY_KEY
from inga.objects.hosting import Layout, hosted, key_label, mailbox
from inga.recipes import Options, find

from .classes import Counter, Document

NAMES = ("alice", "bob", "cathy")


def test_a_class_alone_has_a_copy_at_everybody() -> None:
    found = hosted({"hits": Counter, "text": (Document, ["cathy", "alice"])}, NAMES)
    assert found["hits"].at == (0, 1, 2) and found["text"].at == (0, 2)
    assert hosted({"text": (Document, "bob")}, NAMES)["text"].at == (1,)
    assert hosted(None, NAMES) == {}


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ({"a/b": Counter}, "without '/'"),
        ({"@1": Counter}, "does not begin with '@'"),
        ({"": Counter}, "an object's name"),
        ({"hits": 7}, "made from inga.obg.ObjectClass"),
        ({"hits": Counter()}, "made from inga.obg.ObjectClass"),
        ({"hits": (Counter, ["dave"])}, "'dave', who is not among the members"),
        ({"hits": (Counter, [])}, "name at least one member"),
    ],
)
def test_what_cannot_be_meant_is_refused(objects: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        hosted(objects, NAMES)


def test_members_are_the_first_processes_of_a_trace_and_copies_follow() -> None:
    layout = Layout({"hits": Counter, "text": (Document, ["bob"])}, NAMES)
    assert layout.processes.names == [*NAMES, "alice/hits", "bob/hits", "bob/text", "cathy/hits"]
    roster = layout.roster
    assert [layout.processes.of[roster.client(member)] for member in range(3)] == [0, 1, 2]
    assert all(layout.processes.of[roster.find(mailbox(member))[0]] is None for member in range(3))
    assert [name for _, _, name in layout.copies_at(1)] == ["bob/hits", "bob/text"]
    counts = list(range(len(roster.places)))
    vector = layout.processes.vector(counts)
    assert vector[:3] == tuple(roster.client(member) for member in range(3))
    assert layout.processes.mask(roster.find("hits")) == 0b1011000


def test_conflicts_as_a_manifest_has_them() -> None:
    pairs = [["dec", "show"], ["inc", "show"]]
    assert Layout({"hits": Counter}, NAMES).conflicts == {f"{name}/hits": pairs for name in NAMES}
    one = Layout({"text": (Document, ["bob"])}, NAMES).conflicts
    assert one == {"bob/text": [["edit", "render"]]}, "edits conflict or not by their arguments"
    both = Layout({"text": (Document, ["bob"]), "hits": Counter}, NAMES)
    assert both.undecided == {"bob/text": [["edit", "edit"]]}, "which the check is told"
    whole = Layout({"text": (Document, ["bob"])}, NAMES, total=True)
    assert whole.conflicts == {"bob/text": [["edit", "edit"], ["edit", "render"], ["render", "render"]]}
    assert whole.undecided is None


def test_plain_messages_conflict_by_key() -> None:
    labels = [key_label(key) for key in range(2)]
    assert Layout(None, NAMES, keys=2).conflicts == {name: [[key, key] for key in labels] for name in NAMES}
    assert Layout(None, NAMES, total=True).conflicts is None
    layout = find("object").layout(NAMES, None, {"key": len})
    assert layout is not None and layout.conflicts == {name: [[ANY_KEY, ANY_KEY]] for name in NAMES}
    assert key_label(1) != key_label("1"), "keys that differ are not to be taken for one in a trace"


@pytest.mark.parametrize(
    ("order", "protocol", "says"),
    [
        ("object", {"delta": 0}, "delta is a number of seconds above 0"),
        ("object", {"grace": -1.0}, "grace is a number of seconds above 0"),
        ("object", {"keys": 0}, "keys is a whole number"),
        ("object", {"key": 7}, "key is a function"),
        ("object", {"window": 0}, "window is a whole number of at least 1"),
        ("object", {"announce": 2}, "announce is 0 or 1"),
        ("object", {"over": "pigeons"}, "stands over reliable or datagrams, not 'pigeons'"),
        (
            "object",
            {"size": 1},
            "'object' has no option 'size'; there are delta, grace, announce, window, key, keys",
        ),
        ("total", {"keys": 2}, "'total' has no option 'keys'; there are delta, grace, announce, window"),
    ],
)
def test_options_that_cannot_be_meant(order: str, protocol: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find(order).build(Options(protocol=protocol))


def test_other_orders_have_no_objects() -> None:
    with pytest.raises(
        UsageError, match=r"objects is an option of order object, total, .*; order 'vector' has"
    ):
        find("causal").check(Options(objects={"hits": Counter}))
    assert find("causal").layout(NAMES, None, {}) is None
    assert find("total").claims(full=True, objects=True) == ["object", "views"]
