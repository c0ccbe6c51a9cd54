"""Declared classes: what conflicts, what is refused, and how a wrong declaration is found."""

from random import Random
from typing import Any

import pytest

from inga.model.errors import UsageError
from inga.obg import Abort, Call, ObjectClass, check_compatible, method

from .classes import Account, Counter, Document, File


def conflicts(cls: type[ObjectClass], one: str, other: str) -> bool:
    return cls.conflicts.between(Call(one), Call(other))


def test_what_is_not_declared_conflicts_even_with_itself() -> None:
    class Bare(ObjectClass):
        @method
        async def act(self, ctx: Any) -> None: ...

        @method()
        async def other(self, ctx: Any) -> None: ...

    assert Bare.conflicts.pairs == [["act", "act"], ["act", "other"], ["other", "other"]]


def test_the_counter_is_not_transitive() -> None:
    assert Counter.conflicts.pairs == [["dec", "show"], ["inc", "show"]]
    assert not conflicts(Counter, "inc", "dec") and not conflicts(Counter, "inc", "inc")
    assert conflicts(Counter, "inc", "show") and conflicts(Counter, "show", "dec")


def test_a_declaration_on_one_side_is_enough() -> None:
    class OneSided(ObjectClass):
        @method(compatible=("b",))
        async def a(self, ctx: Any) -> None: ...

        @method
        async def b(self, ctx: Any) -> None: ...

    assert not conflicts(OneSided, "a", "b") and not conflicts(OneSided, "b", "a")
    assert OneSided.conflicts.pairs == [["a", "a"], ["b", "b"]]


def test_two_methods_that_change_nothing_are_compatible() -> None:
    class Watched(ObjectClass):
        @method(identity=True)
        async def look(self, ctx: Any) -> None: ...

        @method(identity=True)
        async def peek(self, ctx: Any) -> None: ...

    assert Watched.conflicts.pairs == []
    assert Watched.conflicts.of("look") == frozenset()


def test_a_file_and_an_account() -> None:
    assert File.conflicts.pairs == [["read", "write"], ["write", "write"]]
    assert conflicts(Account, "withdraw", "deposit") and not conflicts(Account, "deposit", "deposit")
    assert not conflicts(Account, "balance", "balance")


def test_arguments_decide_where_both_methods_ask_them() -> None:
    between = Document.conflicts.between
    assert between(Call("edit", ("a", "x")), Call("edit", ("a", "y")))
    assert not between(Call("edit", ("a", "x")), Call("edit", ("b", "y")))
    assert between(Call("edit", ("a", "x")), Call("render")), "render does not ask arguments, so it conflicts"
    assert between(Call("edit"), Call("edit", ("a", "x"))), "what cannot be compared conflicts"
    assert Document.conflicts.of("edit") == {"edit", "render"}, "it counts as conflicting with itself"


def test_subclasses_have_the_methods_of_their_base() -> None:
    class Loud(Counter):
        @method(compatible=("inc", "dec"))
        async def shout(self, ctx: Any) -> None: ...

    assert set(Loud.methods) == {"inc", "dec", "show", "shout"}
    assert not conflicts(Loud, "shout", "inc") and conflicts(Loud, "shout", "show")
    assert "shout" not in Counter.methods


def wrong_name() -> None:
    class Wrong(ObjectClass):
        @method(compatible=("nothing",))
        async def act(self, ctx: Any) -> None: ...


def wrong_undo() -> None:
    class Wrong(ObjectClass):
        @method(undo="back")
        async def act(self, ctx: Any) -> None: ...


def wrong_absorbs() -> None:
    class Wrong(ObjectClass):
        @method(absorbs=("writes",))
        async def write(self, ctx: Any) -> None: ...


def a_text() -> None:
    class Wrong(ObjectClass):
        @method(compatible="act")
        async def act(self, ctx: Any) -> None: ...


def not_async() -> None:
    class Wrong(ObjectClass):
        @method
        def act(self, ctx: Any) -> None: ...


def no_context() -> None:
    class Wrong(ObjectClass):
        @method
        async def act(self) -> None: ...


def hidden() -> None:
    class Wrong(Counter):
        async def inc(self, ctx: Any) -> None: ...  # type: ignore[override]


def no_place_for_the_context() -> None:
    class Wrong(ObjectClass):
        @method
        async def act(self, *, ctx: Any) -> None: ...


def named_state() -> None:
    class Wrong(ObjectClass):
        @method
        async def state(self, ctx: Any) -> None: ...  # type: ignore[override]


def a_state_of_its_own() -> None:
    class Wrong(ObjectClass):
        state = 7


def named_initial() -> None:
    class Wrong(ObjectClass):
        @method
        async def initial(self, ctx: Any) -> None: ...  # type: ignore[override]


def declared(**how: Any) -> Any:
    def make() -> None:
        class Wrong(ObjectClass):
            @method(**how)
            async def act(self, ctx: Any) -> None: ...

    return make


async def in_time(one: Call, other: Call) -> bool:
    return True


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (no_place_for_the_context, r"takes \(self, ctx, ...\)"),
        (named_state, "Wrong.state hides what every object has"),
        (a_state_of_its_own, "Wrong.state hides what every object has"),
        (named_initial, "Wrong.initial hides what every object has"),
        (declared(conflict_if=3), "conflict_if is a function that says of two calls .* not 3"),
        (declared(conflict_if="act"), "conflict_if is a function"),
        (declared(conflict_if=in_time), "conflict_if is a function"),
        (declared(identity="no"), "identity is True or False, not 'no'"),
        (declared(undo=["act"]), "undo is the name of a method"),
        (declared(undo=3), "undo is the name of a method, not 3"),
        (declared(compatible=3), "compatible are names of methods, not 3"),
        (declared(compatible=[["act"]]), "compatible are names of methods"),
        (declared(absorbs=(act for act in (1, 2))), "absorbs are names of methods"),
        (wrong_name, "Wrong.act: compatible names 'nothing'; the methods are act"),
        (wrong_undo, "Wrong.act: undo names 'back'"),
        (wrong_absorbs, "Wrong.write: absorbs names 'writes'"),
        (a_text, "letter by letter"),
        (not_async, "async def"),
        (no_context, r"takes \(self, ctx, ...\)"),
        (hidden, "Wrong.inc hides a method of its base"),
    ],
)
def test_a_wrong_declaration_is_an_error_at_once(make: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()


# Trying declarations


def some_calls(rng: Random) -> tuple[Any, ...]:
    return rng.choice(["deposit", "withdraw", "take_back"]), rng.randrange(1, 20)


def test_what_is_declared_right_passes() -> None:
    rng = Random(1)
    assert check_compatible(Account, lambda r: r.randrange(30), some_calls, rng=rng, runs=20) == []
    counter = [("inc",), ("inc", 3), ("dec", 2), ("show",)]
    assert check_compatible(Counter, range(-5, 5), counter) == []
    edits = [("edit", "a", "x"), ("edit", "a", "y"), ("edit", "b", "x"), ("render",)]
    assert check_compatible(Document, [{}, {"a": "z"}], edits) == []
    assert check_compatible(File, [b"", b"x"], [("read",), ("write", b"1"), ("write", b"2")]) == []


class Careless(Account):
    """As if a withdrawal did not depend on what is there."""

    @method(compatible=("deposit", "withdraw"), undo="deposit")
    async def withdraw(self, ctx: Any, x: int) -> None:
        if self.state < x:
            raise Abort("insufficient funds")
        ctx.effect(lambda s: s - x)


def test_withdraw_and_deposit_do_not_commute(capsys: pytest.CaptureFixture[str]) -> None:
    found = check_compatible(Careless, lambda r: r.randrange(30), some_calls, rng=Random(2), runs=40)
    assert {(each.what, *sorted(call.op for call in each.calls)) for each in found} == {
        ("compatible", "deposit", "withdraw"),
        ("compatible", "withdraw", "withdraw"),
    }
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert all("are declared compatible, but from state" in line for line in printed)
    example = next(each for each in found if {call.op for call in each.calls} == {"deposit", "withdraw"})
    amount = {call.op: call.args[0] for call in example.calls}
    assert example.state < amount["withdraw"] <= example.state + amount["deposit"]


def test_outputs_count_as_well_as_states() -> None:
    class Ticket(ObjectClass):
        @method(compatible=("draw",))
        async def draw(self, ctx: Any) -> int:
            ctx.effect(lambda s: s + 1)
            return int(self.state)

    (example,) = check_compatible(Ticket, [0], [("draw",)], show=None)
    assert "draw() gives 0 in one order and gives 1 in the other" in str(example)


class Liar(ObjectClass):
    @method(identity=True)
    async def look(self, ctx: Any) -> None:
        ctx.effect(lambda s: s + 1)

    @method(undo="add")
    async def add(self, ctx: Any, x: int) -> None:
        ctx.effect(lambda s: s + x)

    @method(absorbs=("add",))
    async def double(self, ctx: Any) -> None:
        ctx.effect(lambda s: 2 * s)

    @method(conflict_if=lambda mine, other: mine.args[0] < other.args[0])
    async def put(self, ctx: Any, x: int) -> None:
        ctx.effect(lambda s: x)


def test_every_kind_of_declaration_is_tried() -> None:
    calls = [("look",), ("add", 2), ("double",), ("put", 1), ("put", 2)]
    found = check_compatible(Liar, [3], calls, show=None)
    assert sorted(each.what for each in found) == ["absorbs", "conflict_if", "identity", "undo"]


def test_what_cannot_be_tried_says_so() -> None:
    class Caller(ObjectClass):
        @method
        async def ask(self, ctx: Any) -> None:
            await ctx.call("other", "show")

    with pytest.raises(UsageError, match=r"Caller\.ask calls other objects"):
        check_compatible(Caller, [None], [("ask",)])
    with pytest.raises(UsageError, match="no method 'nothing'"):
        check_compatible(Counter, [0], [("nothing",)])
    with pytest.raises(UsageError, match=r"rng=random\.Random"):
        check_compatible(Counter, lambda rng: 0, [("inc",)])


class Fragile(ObjectClass):
    def initial(self) -> list[int]:
        return []

    @method(compatible=("share",))
    async def share(self, ctx: Any, n: int) -> int:
        if n < 0:
            raise Abort("less than nothing")
        return int(self.state[0]) // n

    @method
    async def shuffle(self, ctx: Any) -> None:
        ctx.effect(lambda state: state.reverse())

    @method(compatible=("share", "spoil"))
    async def spoil(self, ctx: Any) -> None:
        if ctx.state[0] == 1:
            ctx.effect(lambda state: [1 // 0])
        ctx.effect(lambda state: [1])


def test_what_a_method_raises_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """It aborts the instance, as in a group: nothing of it counts, and the other methods are still tried."""
    calls = [("share", 0), ("share", 2), ("share", -1), ("share",), ("shuffle",), ("spoil",)]
    found = check_compatible(Fragile, [[6], [1]], calls)
    assert [(each.what, [call.op for call in each.calls]) for each in found] == [
        ("runs", ["share"]),
        ("runs", ["shuffle"]),
        ("compatible", ["share", "spoil"]),
        ("compatible", ["spoil", "spoil"]),
        ("runs", ["spoil"]),
    ]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == (
        "Fragile: share(0): a method ends, or raises Abort, but from state [6] "
        "it raises (ZeroDivisionError: integer division or modulo by zero)"
    )
    assert "it raises (UsageError: the state of an object is changed by ctx.effect(f)" in printed[1]
    assert "spoil() gives None in one order and raises (ZeroDivisionError" in printed[3]
