"""Bytes of CORBA: CDR, GIOP messages and how a stream is cut into them, MIOP packets, references."""
