"""The object request broker on a network: IIOP connections, channels to groups, and the `Orb` that has both.

    from inga.corba.orb import Long, Orb, interface

All that a program with CORBA objects needs can be imported from here: docs/orb.md shows it. What cannot be reached from the names
below is private.
"""

from inga.corba.broker.groups import CREATE_ADDRESS_SUPPLIED, GroupManager
from inga.corba.broker.idl import (
    Char,
    Double,
    Float,
    Long,
    LongLong,
    Octet,
    Short,
    SystemException,
    ULong,
    ULongLong,
    UserException,
    UShort,
    WChar,
    WString,
    interface,
    oneway,
    operation,
    raises,
    user_exception,
)
from inga.corba.broker.idl_text import to_idl
from inga.corba.broker.naming import NamingContext, to_name
from inga.corba.orb.iiop import Limits
from inga.corba.orb.lookup import find, serve_names
from inga.corba.orb.memberships import Multicast
from inga.corba.orb.orb import Orb
from inga.corba.orb.tls import Tls, caller
from inga.corba.wire.reference import Reference, to_ior

__all__ = [
    "Orb", "Limits", "Tls", "Multicast", "caller", "Reference", "to_ior",
    # interfaces
    "interface", "operation", "oneway", "raises", "user_exception", "UserException", "SystemException", "to_idl",
    "Octet", "Short", "UShort", "Long", "ULong", "LongLong", "ULongLong", "Float", "Double", "Char", "WChar", "WString",
    # finding objects, and groups of them
    "find", "serve_names", "NamingContext", "to_name", "GroupManager", "CREATE_ADDRESS_SUPPLIED",
]  # fmt: skip
