"""What a run leaves and shows: its folder, checkpoints, curves, progress."""
