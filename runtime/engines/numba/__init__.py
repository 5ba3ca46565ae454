"""The compiled engine. Nothing here is imported where numba is not installed."""
