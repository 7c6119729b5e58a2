"""The exact frontier over thousands of chips and all architectures of a space at once."""
