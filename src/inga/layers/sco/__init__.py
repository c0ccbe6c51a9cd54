"""SCO: causal order for messages to any members. `machine` is the protocol, based on `talking` and `ordering`; `layer` puts
it into a stack, `parts` has its settings, messages and events, and `lossless` is a variant for networks without loss."""
