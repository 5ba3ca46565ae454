"""What stands where in the numbers of an open bin, an array of int64 that the binner and its kernel share."""

# What never changes: the sensor, cells from one polarity to the next, the largest value, the last bin or −1.
WIDTH, HEIGHT, POLARITIES, PLANE, LIMIT, BIN_US, LAST = range(7)
# Where the stream stands. BIN and LOW = BIN · BIN_US (µs since the origin) are without a sign. SPAN is BIN_US, or 0
# where no event may enter the open bin, because it is LAST or because all of int64 lies before it (BEYOND).
ORIGIN, KNOWN, BIN, LOW, SPAN, BEYOND, TOUCHED = range(7, 14)
# Events so far, and those in no bin by reason; what saturated counts of the open bin have lost, and what complete bins.
EVENTS, OFF_SENSOR, BAD_POLARITY, BEFORE, AFTER, LATE, SURPLUS, CLIPPED = range(14, 22)
# What was written since these were set to 0: bins that are listed, their cells, and the sum of all values.
BUSY, CELLS, COUNTED, SLOTS = range(22, 26)

FULL = 255  # a count stays there, and what is beyond goes to SURPLUS
