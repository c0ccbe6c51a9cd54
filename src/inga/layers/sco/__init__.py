"""SCO: causal order for messages to any members. `machine` is the protocol, on `talking` and `ordering`; `layer` puts
it into a stack, `parts` are what it reads and says, `lossless` is for networks without loss."""
