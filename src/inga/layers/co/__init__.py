"""CO: causal broadcast by sequence numbers. `machine` is the protocol, `layer` puts it into a stack."""
