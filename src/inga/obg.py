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
from inga.objects.invoke import InvocationAborted

__all__ = [
    "Abort",
    "Call",
    "Context",
    "Counterexample",
    "InvocationAborted",
    "ObjectClass",
    "RemoteError",
    "check_compatible",
    "method",
]
