"""From a source of events to decisions."""
