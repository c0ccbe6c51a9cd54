"""Groups that nobody else can read, disturb or join."""
