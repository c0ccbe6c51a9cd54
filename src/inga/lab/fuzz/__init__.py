"""Fuzzing of all decoders: octets that inga's own encoders made are mutated where their structure is known.

    mutate    the fields of a sample, and their mutations
    decoder   what a decoder promises: the errors it may raise, its time, its memory, stability of accepted input
    native    packets of inga: every order, every section, every control message; members that receive them
    secured   what secured groups read: handshake messages, certificates
    broker    CORBA: CDR, GIOP, MIOP and ReMIOP, references, captures
    files     traces and the logs of other systems
    table     all decoders by name
    search    thousands of seeds, the faults found, and the shortest octets that show them

`inga fuzz` is the command; docs/hunting.md describes it.
"""
