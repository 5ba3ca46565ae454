"""The path from a source of events to decisions."""
