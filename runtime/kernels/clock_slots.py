"""What stands where in the numbers of a clock that is followed, an array of int64 that readers and kernels share."""

KNOWN, LAST, TURNS, CLOCK_SLOTS = range(4)  # whether it was read at all, its last reading, how often it began anew
