"""Requests to groups: the layers of MIOP and ReMIOP, and the transport that carries an order over them."""
