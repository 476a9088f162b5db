"""What the operating system enforces."""
