"""Text, numbers, tables and styles of a page."""
