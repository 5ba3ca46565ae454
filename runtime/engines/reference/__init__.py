"""The engine in numpy, which defines what the others must compute; states and noise."""
