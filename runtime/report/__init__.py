"""One HTML page with all that is known of a file. Never imports torch."""
