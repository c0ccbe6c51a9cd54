"""A busy machine is no reason to fail: Hypothesis counts examples here, not milliseconds."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
