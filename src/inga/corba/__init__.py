"""CORBA, all of it: remote objects, groups of objects, and orders whose packets travel over MIOP.

orders      `miop`, `miop+acks`, `remiop`, `remiop+*`: imported by `inga.recipes` when one is requested by name
orb         IIOP connections, channels to groups, and `Orb`, which has both; uses asyncio
dissect     decodes captured traffic, and references
broker      interfaces, dispatch, replies, names and groups, without a network
multicast   MIOP and ReMIOP as layers of a stack
wire        CDR, GIOP, MIOP packets, references
"""
