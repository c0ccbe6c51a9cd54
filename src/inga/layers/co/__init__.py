"""CO: causal broadcast by sequence numbers. `machine` is the protocol, on `ordering`; `layer` puts it into a stack,
`parts` are what it reads and says, `lossless` is for networks without loss."""
