"""How layers compose into one member's protocol stack, are checked, and are replaced."""
