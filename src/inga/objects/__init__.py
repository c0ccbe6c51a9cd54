"""Invocations of objects ordered by their conflicts (OBG), and the door to CORBA's object groups."""
