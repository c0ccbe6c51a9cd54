"""The ordering core: clocks that stamp, the inbox that holds, the frontier that sees branches."""
