"""What all orders have in common: which members are present, which view is in force, and which members hold the group up."""
