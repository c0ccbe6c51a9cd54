"""Requests to groups: the layers of MIOP and ReMIOP, and what carries an order over them."""
