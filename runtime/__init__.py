"""Run an exported file on events, without torch."""
