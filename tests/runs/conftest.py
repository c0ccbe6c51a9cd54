"""Processes meet as members of other network tests do."""

from ..net.conftest import free_port, group_name, loopback_only

__all__ = ["free_port", "group_name", "loopback_only"]
