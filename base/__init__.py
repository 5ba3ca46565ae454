"""What every other package may use: the user's faults as one exception, files written whole or not at all."""
