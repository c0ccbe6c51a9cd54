"""States that nobody can change in place."""

import json
import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.model.readonly import PLAIN, ReadOnlyDict, ReadOnlyList, ReadOnlySet, read_only
from inga.wire.value import copied

STATE: dict[str, Any] = {
    "list": [1, [2, {"deep": [3]}]],
    "set": {4},
    "tuple": (5, [6], (7, (8,))),
    "text": "nine",
}


def changes() -> list[tuple[str, Callable[[Any], Any]]]:
    """Every way to change a list, a dictionary or a set, as Python itself tells them."""
    found: list[tuple[str, Callable[[Any], Any]]] = []
    samples: dict[type[Any], Any] = {list: [3, 1], dict: {1: 2}, set: {1, 2}}
    arguments: list[tuple[Any, ...]] = [(), (1,), (5,), ({1},), ([(1, 1)],), (0, 5), (5, 6)]
    for kind, sample in samples.items():
        for name in dir(kind):
            if name in ("__init__", "__setstate__", "__class__", "__init_subclass__"):
                continue
            for args in arguments:
                tried = deepcopy(sample)
                try:
                    getattr(tried, name)(*args)
                except Exception:
                    continue
                if tried != sample or list(tried) != list(sample):
                    found.append((f"{kind.__name__}.{name}{args}", _change(sample, name, args)))
    return found


def _change(sample: Any, name: str, args: tuple[Any, ...]) -> Callable[[Any], Any]:
    def change() -> Any:
        state = read_only(sample)
        try:
            getattr(state, name)(*args)
        finally:
            assert state == sample and list(state) == list(sample)

    return lambda _: change()


CHANGES = changes()


def test_there_are_changes_to_refuse() -> None:
    names = {name.partition("(")[0] for name, _ in CHANGES}
    assert {
        "list.append",
        "list.sort",
        "list.__iadd__",
        "dict.update",
        "dict.__ior__",
        "set.add",
        "set.__isub__",
    } <= names


@pytest.mark.parametrize("change", [each for _, each in CHANGES], ids=[name for name, _ in CHANGES])
def test_every_change_is_refused_and_says_what_to_do(change: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError, match=r"changed by ctx\.effect\(f\)"):
        change(None)


def test_what_is_inside_cannot_be_changed_either() -> None:
    state = read_only(STATE)
    for inner in (state["list"], state["list"][1], state["list"][1][1]["deep"], state["tuple"][1]):
        with pytest.raises(UsageError):
            inner.append(1)
    with pytest.raises(UsageError):
        state["list"][1][1]["deep"] = 1
    with pytest.raises(UsageError):
        state["set"].add(1)
    assert state == STATE and repr(state) == repr(STATE)


def test_what_was_given_stays_as_it_was_and_is_shared_with_nobody() -> None:
    given = deepcopy(STATE)
    state = read_only(given)
    given["list"][1].append(1)
    given["tuple"][1].append(1)
    given["set"].add(1)
    assert state == STATE


def test_what_is_read_only_is_not_made_so_again() -> None:
    state = read_only(STATE)
    assert read_only(state) is state
    newer = read_only({**state, "more": [1]})
    assert all(newer[name] is state[name] for name in ("list", "set")) and type(newer["more"]) is ReadOnlyList
    pair = (1, ("two", 3.0))
    assert read_only(pair) is pair and read_only([pair])[0] is pair


@pytest.mark.parametrize("made", [copy, deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_copies_are_plain(made: Callable[[Any], Any]) -> None:
    for state in (read_only([1, [2]]), read_only({1: [2]}), read_only({1, 2})):
        plain = made(state)
        assert type(plain) is PLAIN[type(state)] and plain == state
    deep = deepcopy(read_only(STATE))
    assert deep == STATE and type(deep["list"][1][1]["deep"]) is list and type(deep["set"]) is set


def test_what_operators_make_is_plain() -> None:
    numbers, table, some = read_only([1, 2]), read_only({1: 2}), read_only({1})
    assert [type(each) for each in (numbers.copy(), numbers[:1], numbers * 2, [*numbers])] == [list] * 4
    assert [type(each) for each in (table | {2: 3}, {**table}, table.copy())] == [dict] * 3
    assert [type(each) for each in (some | {2}, some - {1}, some.copy())] == [set] * 3
    assert isinstance(numbers, list) and isinstance(table, dict) and isinstance(some, set)
    assert json.dumps([numbers, table]) == '[[1, 2], {"1": 2}]'


def test_they_travel_as_what_they_are_made_from() -> None:
    state = read_only({"a": [1, {"b": (2, [3])}]})
    sent = copied(state)
    assert (
        sent == state
        and type(sent) is dict
        and type(sent["a"]) is list
        and type(sent["a"][1]["b"][1]) is list
    )
    with pytest.raises(UsageError, match="not set"):
        copied(ReadOnlySet({1}))
    assert type(state) is ReadOnlyDict
