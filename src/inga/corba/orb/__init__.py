"""The object request broker on a network: IIOP connections, channels to groups, and the `Orb` that has both."""
