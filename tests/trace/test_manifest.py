import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.model.errors import TraceError
from inga.trace import Manifest, ProcessFile, mark_crashed, read_manifest, read_processes
from inga.trace.manifest import process_path

GOOD: dict[str, Any] = {
    "format": 1,
    "run": "00000000-0000-4000-8000-000000000001",
    "group": "lunch",
    "processes": ["alice", "bob", "cathy"],
    "source": "live",
    "order": "vector",
    "guarantees": ["causal", "stamps"],
    "receipt": "take",
    "options": {"loss": 0.05},
    "seed": 7,
    "clock": "wall",
    "conflicts": {"alice": [["deposit", "withdraw"]]},
    "undecided": {"alice": [["deposit", "deposit"]]},
    "complete": False,
}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    Manifest.parse(json.dumps(GOOD), "here").write(tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text()) == GOOD
    assert read_manifest(tmp_path).to_json() == GOOD
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_new_run_has_a_name_of_its_own() -> None:
    first, second = (Manifest("g", ["a"], "sim", "co", "accept", "virtual") for _ in range(2))
    assert UUID(first.run) != UUID(second.run)
    assert first.format == 1


@given(st.dictionaries(st.text().filter(lambda key: key not in GOOD), VALUES, max_size=4))
def test_unknown_keys_are_kept(extra: dict[str, Any]) -> None:
    text = json.dumps(GOOD | extra)
    again = Manifest.parse(json.dumps(Manifest.parse(text, "here").to_json()), "here")
    assert again.extra == extra
    assert again.to_json() == GOOD | extra


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), VALUES, min_size=1))
def test_any_value_is_taken_or_refused_in_one_sentence(changes: dict[str, Any]) -> None:
    try:
        Manifest.parse(json.dumps(GOOD | changes), "here")
    except TraceError as error:
        assert str(error).startswith("here: ")
        assert "\n" not in str(error)


def test_two_processes_of_one_name_are_refused(tmp_path: Path) -> None:
    names = ["alice", "bob", "carol", "bob"]
    with pytest.raises(TraceError, match=r'^here: 2 of "processes" are called "bob"\.$'):
        Manifest.parse(json.dumps(GOOD | {"processes": names}), "here")
    with pytest.raises(TraceError, match="are called"):
        Manifest("g", names, "sim", "co", "accept", "virtual").write(tmp_path)
    assert not list(tmp_path.iterdir())


@given(st.binary() | st.text())
def test_any_other_text_is_refused(text: bytes | str) -> None:
    with pytest.raises(TraceError, match=r"^here "):
        Manifest.parse(text, "here")


@pytest.mark.parametrize(("depth", "is_taken"), [(99, True), (100, False), (900, False), (10**5, False)])
def test_what_is_nested_too_deeply_is_refused_whoever_reads_it(depth: int, is_taken: bool) -> None:
    """Python itself reads about a thousand, and fewer the more calls are under way."""
    text = json.dumps(GOOD)[:-1] + ', "note": ' + "[" * depth + "]" * depth + "}"
    if is_taken:
        taken = Manifest.parse(text, "here")
        assert Manifest.parse(json.dumps(taken.to_json()), "here") == taken
    else:
        with pytest.raises(TraceError, match=r"^here is (nested more than 100 times|not JSON)"):
            Manifest.parse(text, "here")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": 2}, 'here: "format" must be 1, the only one known here, not 2.'),
        ({"format": True}, 'here: "format" must be 1, the only one known here, not true.'),
        ({"run": ""}, 'here: "run" must be a text, not "".'),
        ({"processes": []}, 'here: "processes" must be a list of at least one name, not [].'),
        ({"processes": ["a", 3]}, 'here: "processes" must be a list of at least one name, not ["a", 3].'),
        ({"receipt": "send"}, 'here: "receipt" must be one of accept, deliver, take, not "send".'),
        ({"clock": "sun"}, 'here: "clock" must be one of virtual, wall, not "sun".'),
        ({"seed": "x"}, 'here: "seed" must be a whole number or null, not "x".'),
        ({"options": []}, 'here: "options" must be an object, not [].'),
        ({"complete": 1}, 'here: "complete" must be true or false, not 1.'),
    ],
)
def test_a_defect_is_named(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TraceError) as caught:
        Manifest.parse(json.dumps(GOOD | changes), "here")
    assert str(caught.value) == sentence


def test_an_unknown_claim_and_odd_conflicts_are_refused() -> None:
    with pytest.raises(TraceError, match='"guarantees" must be a list of integrity, complete'):
        Manifest.parse(json.dumps(GOOD | {"guarantees": ["luck"]}), "here")
    with pytest.raises(TraceError, match='"conflicts" must be null or an object'):
        Manifest.parse(json.dumps(GOOD | {"conflicts": {"alice": [["one"]]}}), "here")


@pytest.mark.parametrize(
    "key", ["format", "run", "group", "processes", "source", "order", "receipt", "clock"]
)
def test_what_is_missing_is_named(key: str) -> None:
    content = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(TraceError, match=f'^here has no "{key}"\\.$'):
        Manifest.parse(json.dumps(content), "here")


def test_what_cannot_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match='"clock" must be'):
        Manifest("g", ["a"], "sim", "co", "accept", "sun").write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_process_files_are_read_by_index(tmp_path: Path) -> None:
    Manifest.parse(json.dumps(GOOD), "here").write(tmp_path)
    bob = ProcessFile(1, "bob", first_view=1, last_pos=9, complete=True, extra={"host": "left"})
    bob.write(tmp_path)
    assert read_processes(tmp_path) == [ProcessFile(0, "alice"), bob, ProcessFile(2, "cathy")]


def test_who_joined_later_is_known_by_the_process_file(tmp_path: Path) -> None:
    Manifest.parse(json.dumps(GOOD), "here").write(tmp_path)
    ProcessFile(3, "dan").write(tmp_path)
    ProcessFile(4, "eve").write(tmp_path)
    assert read_manifest(tmp_path).processes == ["alice", "bob", "cathy", "dan", "eve"]
    assert [file.name for file in read_processes(tmp_path)] == ["alice", "bob", "cathy", "dan", "eve"]


@pytest.mark.parametrize(
    ("index", "content", "message"),
    [
        (
            1,
            {"process": 1, "name": "eve", "last_pos": 0, "complete": True},
            'calls process 1 "eve", but manifest',
        ),
        (1, {"process": 2, "name": "bob", "last_pos": 0, "complete": True}, "describes process 2"),
        (400, {"process": 400, "name": "eve", "last_pos": 0, "complete": True}, "nothing names process 399"),
        (1, {"process": 1, "name": "bob", "last_pos": -1, "complete": True}, '"last_pos" must be a position'),
        (1, {"process": 1, "name": "bob", "last_pos": 1}, 'has no "complete"'),
        (1, [], "must hold a JSON object"),
    ],
)
def test_a_process_file_that_contradicts_is_refused(
    tmp_path: Path, index: int, content: object, message: str
) -> None:
    Manifest.parse(json.dumps(GOOD), "here").write(tmp_path)
    path = process_path(tmp_path, index)
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    with pytest.raises(TraceError, match=message) as caught:
        read_processes(tmp_path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_of_a_process_is_refused(tmp_path: Path) -> None:
    Manifest.parse(json.dumps(GOOD), "here").write(tmp_path)
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes" / "bob.json").write_text("{}")
    with pytest.raises(TraceError, match="not named after the index"):
        read_processes(tmp_path)


def test_a_launcher_records_whom_it_killed(tmp_path: Path) -> None:
    Manifest.parse(json.dumps(GOOD), "here").write(tmp_path)
    ProcessFile(1, "bob", first_view=1, last_pos=9).write(tmp_path)
    mark_crashed(tmp_path, 1, "bob")
    mark_crashed(tmp_path, 2, "cathy")  # killed before it wrote anything
    assert read_processes(tmp_path)[1:] == [
        ProcessFile(1, "bob", first_view=1, last_pos=9, crashed=True),
        ProcessFile(2, "cathy", crashed=True),
    ]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"manifest\.json cannot be written: "):
        Manifest.parse(json.dumps(GOOD), "here").write(tmp_path / "file")


def test_two_threads_may_write_one_process_file(tmp_path: Path) -> None:
    """A member says what it no longer claims while its segments are written by a thread."""

    def write(count: int) -> None:
        for pos in range(count):
            ProcessFile(0, "alice", last_pos=pos).write(tmp_path)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(write, 200) for _ in range(4)]:
            done.result()
    assert [path.name for path in (tmp_path / "processes").iterdir()] == ["0.json"]
