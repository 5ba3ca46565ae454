"""A panel that runs the network in the page itself: on what is drawn, or on a recording."""
