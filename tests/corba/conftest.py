"""A busy machine is no reason to fail: Hypothesis counts examples here, not milliseconds. Sockets stay on loopback."""

from hypothesis import settings

from ..net.conftest import free_port, loopback_only, run

__all__ = ["free_port", "loopback_only", "run"]

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
