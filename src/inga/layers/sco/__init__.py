"""SCO: causal order for messages to any members. `machine` is the protocol, `layer` puts it into a stack."""
