"""What members prove themselves by: secrets that a group shares, authorities, and the certificates they issue."""
