"""Names: the rules of CosNaming, against a table of paths as the model, and names as text."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inga.corba.broker import naming
from inga.corba.broker.idl import SystemException
from inga.corba.broker.naming import (
    AlreadyBound,
    Binding,
    BindingType,
    CannotProceed,
    InvalidAddress,
    InvalidName,
    Iterating,
    LocalContext,
    NameComponent,
    NameService,
    NamingContext,
    NotEmpty,
    NotFound,
    NotFoundReason,
    to_name,
    to_string,
)
from inga.corba.wire.giop import Tagged
from inga.corba.wire.reference import GroupIdentity, Reference, group_reference
from inga.model.errors import UsageError

GROUP = group_reference("IDL:test/Forum:1.0", GroupIdentity("d", 1), "239.1.2.3", 7000)
OTHER = group_reference("IDL:test/Forum:1.0", GroupIdentity("d", 2), "239.1.2.4", 7000)


class World:
    """Contexts under made-up references, and those of another process, which may be out of reach."""

    def __init__(self) -> None:
        self.active: dict[Reference, Any] = {}
        self.abroad: dict[Reference, NamingContext] = {}
        self.number = 0
        self.service = NameService(self.activate, self.deactivate, self.active.get, self.far)
        self.root = self.service.root

    def activate(self, servant: Any) -> Reference:
        self.number += 1
        reference = Reference(f"{id(self)}", (Tagged(99, b"%d" % self.number),))
        self.active[reference] = servant
        return reference

    def deactivate(self, servant: Any) -> None:
        for reference in [each for each, active in self.active.items() if active is servant]:
            del self.active[reference]

    def far(self, reference: Reference) -> NamingContext:
        if reference not in self.abroad:
            raise SystemException("TRANSIENT", completed="no")
        return self.abroad[reference]


@pytest.fixture
def world() -> World:
    return World()


def done(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def refused(kind: type[Exception], work: Coroutine[Any, Any, Any]) -> Any:
    with pytest.raises(kind) as caught:
        done(work)
    return caught.value


def test_bind_resolve_unbind(world: World) -> None:
    root, name = world.root, to_name("forum.dir/lunch")
    missing = refused(NotFound, root.bind(name, GROUP))
    assert (missing.why, missing.rest_of_name) == (NotFoundReason.MISSING_NODE, name)
    assert str(missing) == "forum.dir/lunch: nothing is bound there"
    done(root.bind_new_context(to_name("forum.dir")))
    done(root.bind(name, GROUP))
    assert done(root.resolve(name)) == GROUP
    assert done(root.resolve_str("forum.dir/lunch")) == GROUP
    assert str(refused(AlreadyBound, root.bind(name, OTHER))).startswith(f"{to_string(name)}: ")
    assert done(root.resolve(name)) == GROUP
    done(root.rebind(name, OTHER))
    assert done(root.resolve(name)) == OTHER
    done(root.unbind(name))
    gone = refused(NotFound, root.resolve(name))
    assert (gone.why, gone.rest_of_name) == (NotFoundReason.MISSING_NODE, to_name("lunch"))
    refused(NotFound, root.unbind(name))


def test_an_object_is_no_context_and_a_context_no_object(world: World) -> None:
    root = world.root
    done(root.bind(to_name("a"), GROUP))
    wrong = refused(NotFound, root.resolve(to_name("a/b")))
    assert (wrong.why, wrong.rest_of_name) == (NotFoundReason.NOT_CONTEXT, to_name("a/b"))
    context = done(root.new_context())
    assert refused(NotFound, root.rebind_context(to_name("a"), context)).why is NotFoundReason.NOT_CONTEXT
    done(root.bind_context(to_name("c"), context))
    assert refused(NotFound, root.rebind(to_name("c"), GROUP)).why is NotFoundReason.NOT_OBJECT
    done(root.rebind_context(to_name("c"), done(root.new_context())))
    refused(AlreadyBound, root.bind_context(to_name("c"), context))
    assert str(refused(AlreadyBound, root.bind_new_context(to_name("c")))).startswith("c: ")


def test_kind_is_part_of_a_name(world: World) -> None:
    done(world.root.bind(to_name("a.x"), GROUP))
    done(world.root.bind(to_name("a.y"), OTHER))
    done(world.root.rebind(to_name("a"), OTHER))
    assert done(world.root.resolve(to_name("a.x"))) == GROUP


def test_destroy(world: World) -> None:
    root = world.root
    reference = done(root.bind_new_context(to_name("c")))
    context = world.active[reference]
    done(context.bind(to_name("x"), GROUP))
    refused(NotEmpty, context.destroy())
    refused(NotEmpty, root.destroy())
    done(context.unbind(to_name("x")))
    done(context.destroy())
    stuck = refused(CannotProceed, root.resolve(to_name("c/x")))
    assert (stuck.cxt, stuck.rest_of_name) == (reference, to_name("x"))
    done(root.unbind(to_name("c")))
    assert refused(SystemException, root.destroy()).name == "NO_PERMISSION"
    assert world.service.octets == 0


def test_a_context_may_live_elsewhere(world: World) -> None:
    other = World()
    reference = other.activate(other.root)
    world.abroad[reference] = other.root
    done(world.root.bind_context(to_name("far"), reference))
    done(world.root.bind(to_name("far/x"), GROUP))
    assert done(other.root.resolve(to_name("x"))) == GROUP
    assert done(world.root.resolve(to_name("far/x"))) == GROUP
    assert refused(NotFound, world.root.resolve(to_name("far/y"))).rest_of_name == to_name("y")
    made = done(world.root.bind_new_context(to_name("far/inner")))
    assert made in other.active
    done(world.root.unbind(to_name("far/x")))
    world.abroad.clear()
    stuck = refused(CannotProceed, world.root.resolve(to_name("far/x")))
    assert (stuck.cxt, stuck.rest_of_name) == (reference, to_name("x"))


def test_nothing_cannot_have_a_name(world: World) -> None:
    assert refused(SystemException, world.root.bind(to_name("a"), None)).name == "BAD_PARAM"
    done(world.root.bind_new_context(to_name("c")))
    assert refused(SystemException, world.root.bind(to_name("c/a"), None)).name == "BAD_PARAM"
    assert refused(SystemException, world.root.bind_context(to_name("a"), None)).name == "BAD_PARAM"


def test_names_that_are_none(world: World) -> None:
    for name in ([], [NameComponent("a")] * 65):
        refused(InvalidName, world.root.resolve(name))
        refused(InvalidName, world.root.bind(name, GROUP))
        refused(InvalidName, world.root.unbind(name))
        refused(InvalidName, world.root.bind_new_context(name))
        refused(InvalidName, world.root.to_string(name))


def test_list_and_its_iterator(world: World) -> None:
    root = world.root
    for number in range(5):
        done(root.bind(to_name(f"n{number}"), GROUP))
    done(root.bind_new_context(to_name("c")))
    expected = [Binding(to_name(f"n{number}"), BindingType.OBJECT) for number in range(5)]
    expected.append(Binding(to_name("c"), BindingType.CONTEXT))
    assert done(root.list(10)) == (expected, None)
    first, reference = done(root.list(2))
    assert first == expected[:2]
    rest = world.active[reference]
    done(root.unbind(to_name("n4")))  # the iterator passes over it
    assert done(rest.next_one()) == (True, expected[2])
    assert refused(SystemException, rest.next_n(0)).name == "BAD_PARAM"
    assert done(rest.next_n(1)) == (True, [expected[3]])
    assert done(rest.next_n(2)) == (True, [expected[5]])
    assert done(rest.next_n(2)) == (False, [])
    more, nothing = done(rest.next_one())
    assert (more, nothing.binding_name) == (False, [])
    done(rest.destroy())
    assert reference not in world.active
    assert done(root.list(0))[0] == []


def test_forgotten_iterators_are_given_up(world: World) -> None:
    done(world.root.bind(to_name("a"), GROUP))
    for _ in range(naming.ITERATORS_MAX + 10):
        done(world.root.list(0))
    assert sum(isinstance(each, Iterating) for each in world.active.values()) == naming.ITERATORS_MAX


def test_what_names_cost_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "OCTETS_MAX", 4000)
    done(world.root.bind(to_name("a"), GROUP))
    one = world.service.octets
    assert naming.OVERHEAD + 60 < one < 1000
    large = Reference("", (Tagged(99, bytes(4000)),))
    for refusal in (
        world.root.bind(to_name("b"), large),
        world.root.rebind(to_name("a"), large),
        world.root.bind(to_name("x" * 1000), GROUP),
    ):
        assert refused(SystemException, refusal).name == "NO_RESOURCES"
    assert world.service.octets == one
    done(world.root.bind_new_context(to_name("c")))
    while world.service.octets + naming.OVERHEAD <= 4000:
        done(world.root.new_context())
    contexts = len(world.active)
    assert refused(SystemException, world.root.bind(to_name("c/b"), GROUP)).name == "NO_RESOURCES"
    assert refused(SystemException, world.root.new_context()).name == "NO_RESOURCES"
    done(world.root.rebind(to_name("a"), OTHER))
    done(world.root.unbind(to_name("a")))
    assert refused(SystemException, world.root.bind_new_context(to_name("x" * 300))).name == "NO_RESOURCES"
    assert len(world.active) == contexts  # the context was not left behind
    done(world.root.bind(to_name("b"), GROUP))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", [("a", "")]),
        ("a.b", [("a", "b")]),
        (".b", [("", "b")]),
        (".", [("", "")]),
        ("a/b.c/.", [("a", ""), ("b", "c"), ("", "")]),
        (r"a\.b\/c\\.d", [("a.b/c\\", "d")]),
    ],
)
def test_names_as_text(text: str, name: list[tuple[str, str]]) -> None:
    components = [NameComponent(*each) for each in name]
    assert to_name(text) == components
    assert to_string(components) == text


@pytest.mark.parametrize("text", ["", "/a", "a/", "a//b", "a.", "a.b.c", "a\\", "a\\b", "/"])
def test_text_that_is_no_name(text: str) -> None:
    with pytest.raises(InvalidName, match="^" + re.escape(text or "an empty text")):
        to_name(text)


@given(
    st.lists(
        st.builds(NameComponent, st.text("ab./\\", max_size=3), st.text("k./\\", max_size=2)), min_size=1
    )
)
def test_text_gives_the_name_again(name: list[NameComponent]) -> None:
    assert to_name(to_string(name[:64])) == name[:64]


def test_urls(world: World) -> None:
    assert done(world.root.to_url(":127.0.0.1:2809", "a b/c")) == "corbaname::127.0.0.1:2809#a%20b/c"
    refused(InvalidAddress, world.root.to_url("", "a"))
    refused(InvalidName, world.root.to_url("x", ""))
    assert done(world.root.to_name("a.b")) == [NameComponent("a", "b")]
    assert done(world.root.to_string([NameComponent("a", "b")])) == "a.b"


PATHS = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple)
DEEDS = ["bind", "rebind", "unbind", "resolve", "bind_new_context"]


@given(st.lists(st.tuples(st.sampled_from(DEEDS), PATHS), max_size=25))
def test_against_a_table_of_paths(deeds: list[tuple[str, tuple[str, ...]]]) -> None:
    """The model knows every path that exists, and whether it is an object or a context."""
    world = World()
    paths: dict[tuple[str, ...], str] = {(): "context"}
    for deed, path in deeds:
        name = [NameComponent(each) for each in path]
        arguments = (GROUP,) if deed in ("bind", "rebind") else ()
        if paths.get(path[:-1]) != "context" or (deed in ("resolve", "unbind") and path not in paths):
            refused(NotFound, getattr(world.root, deed)(name, *arguments))
        elif deed in ("bind", "bind_new_context") and path in paths:
            refused(AlreadyBound, getattr(world.root, deed)(name, *arguments))
        elif deed == "rebind" and paths.get(path) == "context":
            refused(NotFound, world.root.rebind(name, GROUP))
        elif deed == "unbind":
            done(world.root.unbind(name))
            paths = {each: kind for each, kind in paths.items() if each[: len(path)] != path}
        else:
            found = done(getattr(world.root, deed)(name, *arguments))
            if deed == "resolve":
                assert (found == GROUP) == (paths[path] == "object")
            else:
                paths[path] = "context" if deed == "bind_new_context" else "object"
    assert isinstance(world.root, LocalContext)


def test_far_contexts_that_are_not_reachable_by_any_profile(world: World) -> None:
    def no_profile(reference: Reference) -> NamingContext:
        raise UsageError("no profile")

    world.service._far = no_profile
    done(world.root.bind_context(to_name("c"), GROUP))
    refused(CannotProceed, world.root.resolve(to_name("c/x")))
