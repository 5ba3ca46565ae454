"""Serve many live streams with one network over WebSocket: events in, decisions out; torch is not needed."""
