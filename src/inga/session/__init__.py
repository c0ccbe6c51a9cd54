"""What all orders have in common: who is here, which view is in force, and who holds the group up."""
