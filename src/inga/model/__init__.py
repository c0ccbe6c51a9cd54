"""Nouns without behaviour: members and views, packets, stamps, deliveries, steps, errors."""
