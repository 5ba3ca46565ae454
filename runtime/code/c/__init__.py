"""A program as plain C99: one header, one source, its constants; no heap, no library."""
