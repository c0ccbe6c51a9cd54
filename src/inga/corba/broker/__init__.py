"""CORBA objects without a network: interfaces, dispatch, replies, names, groups."""
