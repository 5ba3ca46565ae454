"""One module for each kind of input that may be hostile."""
