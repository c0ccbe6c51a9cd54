"""CORBA's bytes: CDR, GIOP messages and their framing in a stream, MIOP packets, references."""
