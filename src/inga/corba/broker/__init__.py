"""Objects without a network: their interfaces, who is called, what an answer means, names, groups."""
