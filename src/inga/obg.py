"""What a user of objects imports: classes, their methods, and how a method ends badly.

from inga.obg import ObjectClass, method, Abort
"""

from inga.model.errors import RemoteError
from inga.objects.declare import (
    Abort,
    Call,
    Context,
    Counterexample,
    ObjectClass,
    check_compatible,
    method,
)

__all__ = [
    "Abort",
    "Call",
    "Context",
    "Counterexample",
    "ObjectClass",
    "RemoteError",
    "check_compatible",
    "method",
]
