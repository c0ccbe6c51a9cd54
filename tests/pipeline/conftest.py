from hypothesis import settings

# A busy machine is no reason to fail: Hypothesis counts examples here, not milliseconds.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
