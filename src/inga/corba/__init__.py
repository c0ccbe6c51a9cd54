"""CORBA, all of it: objects called by others and in groups, and orders whose packets are MIOP's.

orders      `miop`, `miop+acks`, `remiop`, `remiop+*`: found by `inga.recipes` when asked for by name
orb         IIOP connections, channels to groups, and `Orb`, which has both: asyncio
dissect     what captured traffic holds
broker      interfaces, dispatch, answers, names and groups, without a network
multicast   MIOP and ReMIOP as layers of a stack
wire        CDR, GIOP, MIOP packets, references
"""
