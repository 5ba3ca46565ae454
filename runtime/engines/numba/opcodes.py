"""The first number of each row in a compiled program's table."""

(
    LOAD,
    SCAN,
    SCAN_INPUT,
    LINEAR,
    CONV,
    FIRE,
    FIRE_NOISY,
    LEAKY_SUM,
    ARITHMETIC,
    MOVE,
    ACTIVITY,
    POOL_PAIRS,
    AVERAGE_POOL,
    ROW,
    COPY,
) = range(15)
COLUMNS = 32
# How many numbers a row of each kind has, its code included.
WIDTHS = {
    LOAD: 6,
    SCAN: 5,
    SCAN_INPUT: 6,
    LINEAR: 13,
    CONV: 30,
    FIRE: 22,
    FIRE_NOISY: 22,
    LEAKY_SUM: 9,
    ARITHMETIC: 10,
    MOVE: 4,
    ACTIVITY: 5,
    POOL_PAIRS: 6,
    AVERAGE_POOL: 8,
    ROW: 4,
    COPY: 4,
}
