"""CO: causal broadcast by sequence numbers. `machine` is the protocol, based on `ordering`; `layer` puts it into a stack,
`parts` has its settings, messages and events, and `lossless` is a variant for networks without loss."""
