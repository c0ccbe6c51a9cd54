"""How members prove who they are: secrets that a group shares, authorities, and the certificates that these issue."""
