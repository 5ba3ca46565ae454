"""The engine in C, compiled by the machine's own compiler."""
