"""What layers tell each other in words: read with suspicion."""

from collections.abc import Callable
from typing import Any

import pytest

from inga.model.errors import WireError
from inga.wire.told import Told, said


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("\ud800", lambda told: told.text("x")),
        (["a", "b\udfffc"], lambda told: told.texts("x")),
        ([["\ud800"]], lambda told: told.lists_of_texts("x")),
        ([["\ud800", 1, ""]], lambda told: told.people("x")),
    ],
)
def test_half_a_character_is_no_text(what: Any, ask: Callable[[Told], Any]) -> None:
    """JSON has escapes for these; as a name of a member it could not be written, hashed or shown."""
    with pytest.raises(WireError, match="no text"):
        ask(Told.read(said("greet", x=what)))


@pytest.mark.parametrize("text", ["", "alice", "Zoë", "\U0001f600", "\0"])
def test_text_comes_as_it_was_told(text: str) -> None:
    assert Told.read(said("greet", x=text)).text("x") == text
