"""The rooms of the source in which protocols are."""

PROTOCOL_ROOMS = (
    "stack",
    "session",
    "layers",
    "causality",
    "wire",
    "objects",
    "corba/wire",
    "corba/multicast",
    "corba/broker",
    "corba/dissect",
)
