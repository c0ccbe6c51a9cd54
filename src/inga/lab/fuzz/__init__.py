"""Mutations of everything that inga reads: octets that its own encoders made, spoiled where their structure is known.

    mutate    fields of a sample, and what is done to them
    decoder   what a decoder promises: the errors it may raise, its time, its memory, that what it accepts is stable
    native    packets of inga: every order, every section, every word of the session; members that receive them
    secured   what secured groups read: words of a handshake, certificates
    broker    CORBA: CDR, GIOP, MIOP and ReMIOP, references, captures
    files     traces and the logs of other systems
    table     all decoders by name
    search    thousands of seeds, what they found, and the least octets that show it again

`inga fuzz` is the command, docs/hunting.md the description.
"""
