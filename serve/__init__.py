"""Many live streams through one network, over WebSocket: events in, decisions out; never torch."""
