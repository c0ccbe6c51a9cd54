"""Decodes captured CORBA traffic, and describes references."""
