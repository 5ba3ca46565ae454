"""All that a report is made of: what others wrote, and what it measures itself."""
