"""Drive stacks by asyncio over real sockets: join a group, send, iterate; local clusters of processes."""
