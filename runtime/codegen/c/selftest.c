/* The self-test: names, sensor, bins, and the logits of inputs that are made here, as one sum. */
#define SELFTEST_STEPS (!NETWORK_SPIKING ? 4 : NETWORK_STEPS < 8 ? NETWORK_STEPS : 8)

static uint32_t mixed(uint32_t sum, uint32_t word)
{
    for (int i = 0; i < 4; i++, word >>= 8) sum = (sum ^ (word & 255)) * 16777619u; /* FNV-1a */
    return sum;
}

static uint32_t next_random(uint32_t *r)
{
    *r = *r * 1664525u + 1013904223u;
    return *r >> 8;
}

/* Few values, many, none and the largest ones, in turn. */
static uint32_t selftest_value(uint32_t *r, int step)
{
    const float largest = NETWORK_TAKES_EVENTS && NETWORK_CLIP < NETWORK_LARGEST ? NETWORK_CLIP : NETWORK_LARGEST;
    const uint32_t drawn = next_random(r), most = (uint32_t)largest;
    if (step % 4 == 0) return drawn % 20 == 0 ? 1 + drawn / 32 % most : 0;
    return step % 4 == 1 ? drawn % (most + 1) : step % 4 == 2 ? 0 : most;
}

static uint32_t selftest_contract(uint32_t sum, uint32_t *r)
{
    for (int c = 0; c < NETWORK_CLASSES; c++) {
        for (const char *at = network_labels[c]; *at; at++) sum = mixed(sum, (unsigned char)*at);
        sum = mixed(sum, 0);
    }
#ifdef NETWORK_VALUES
    for (int c = 0; c < NETWORK_CLASSES; c++) {
        for (const char *at = network_units[c]; *at; at++) sum = mixed(sum, (unsigned char)*at);
        sum = mixed(sum, 0);
    }
#endif
#if NETWORK_TAKES_EVENTS
    sum = mixed(mixed(sum, (uint32_t)NETWORK_BIN_US), NETWORK_BINS * 2 + NETWORK_FROM_FIRST);
    if (NETWORK_BIN_EVENTS) sum = mixed(sum, NETWORK_BIN_EVENTS);
    for (int i = 0; i < 64; i++) {
        const uint32_t x = next_random(r) % (NETWORK_SENSOR_WIDTH + 1), y = next_random(r) % (NETWORK_SENSOR_HEIGHT + 1);
        sum = mixed(sum, (uint32_t)network_cell((int)x, (int)y, (int)(next_random(r) % (NETWORK_POLARITIES + 1))));
    }
#else
    (void)r;
#endif
    return sum;
}

int network_selftest(network_state *n)
{
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    uint32_t r = 1, sum = selftest_contract(2166136261u, &r);
    network_init(n, 0, 0);
    for (int step = 0; step < SELFTEST_STEPS; step++) {
        for (int i = 0; i < NETWORK_INPUTS; i++) n->outside[i] = NETWORK_CENTRE + (network_value)selftest_value(&r, step);
        const int refused = take_values(n, n->outside);
        if (refused) return refused;
        network_logits(n, logits);
        for (int m = 0; m < NETWORK_MEMBERS; m++)
            for (int c = 0; c < NETWORK_CLASSES; c++) {
                const float value = logits[m][c] + 0.0f; /* one zero */
                uint32_t bits;
                memcpy(&bits, &value, sizeof bits);
                sum = mixed(sum, bits);
            }
#ifndef NETWORK_VALUES
        sum = mixed(sum, (uint32_t)network_decision(n));
#endif
#ifdef NETWORK_MARGINS
        uint8_t possible[NETWORK_CLASSES];
        network_possible(n, possible);
        for (int c = 0; c < NETWORK_CLASSES; c++) sum = mixed(sum, possible[c]);
#endif
    }
    network_init(n, 0, 0);
    return sum == SELFTEST_SUM ? 0 : NETWORK_WRONG;
}
