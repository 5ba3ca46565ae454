"""A program as a table of integers over flat memory, checked; what the compiled engines run and have in common."""
