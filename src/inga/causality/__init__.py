"""The ordering core: clocks that make stamps, the inbox that holds packets, the frontier that detects branches."""
