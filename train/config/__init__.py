"""What a run is told: settings, how they are read, and the configurations that ship."""
