"""A program as one JavaScript module, for browsers and node."""
