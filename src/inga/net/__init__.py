"""Real members: asyncio, sockets, and the public API of a group."""
