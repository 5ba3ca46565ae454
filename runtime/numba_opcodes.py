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
