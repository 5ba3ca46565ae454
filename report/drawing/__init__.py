"""Charts, bars, curves, strips and pictures."""
