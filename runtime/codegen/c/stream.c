/* A stream of events. */

void network_stream_init(network_stream *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    network_init(&s->network, seed, 0);
}

/* Whether the number of events has ended the open bin; where it ends, the next one begins. */
static int is_full(const network_stream *s)
{
    return NETWORK_BIN_EVENTS && s->events == NETWORK_BIN_EVENTS;
}

/* Run the open bin. A window begins at rest. */
static int complete_bin(network_stream *s)
{
    const int full = is_full(s);
    network_value *const input = s->network.outside;
    if (s->bin % NETWORK_STEPS == 0) network_init(&s->network, s->network.seed, (uint32_t)(s->bin / NETWORK_STEPS));
    for (int i = 0; i < NETWORK_INPUTS; i++) input[i] = (network_value)s->counts[i];
    const int refused = take_values(&s->network, input);
    if (refused) return refused;
    memset(s->counts, 0, sizeof s->counts);
    s->touched = 0;
    s->events = 0;
    if (full) {
        s->anchor = s->last;
        s->base = s->bin + 1;
    }
    return ++s->bin % NETWORK_STEPS == 0 ? NETWORK_DECIDED : NETWORK_STEPPED;
}

int network_stream_event(network_stream *s, int64_t t, int x, int y, int p)
{
    const int cell = network_cell(x, y, p);
    if (cell < 0) {
        if (cell == NETWORK_OFF_SENSOR) s->off_sensor++;
        else if (cell == NETWORK_BAD_POLARITY) s->bad_polarity++;
        else s->cropped++;
        return cell;
    }
    if (!s->started) {
        s->anchor = s->start = NETWORK_FROM_FIRST ? t : 0;
        s->started = 1;
    }
    if (t < s->start) {
        s->before++;
        return NETWORK_BEFORE;
    }
    if (is_full(s)) return complete_bin(s);
    const uint64_t bin = s->base + ((uint64_t)t - (uint64_t)s->anchor) / (uint64_t)NETWORK_BIN_US; /* cannot overflow */
    if (t < s->anchor || bin < s->bin) {
        s->late++;
        return NETWORK_LATE;
    }
    if (bin > s->bin) return complete_bin(s);
    if (s->counts[cell] < NETWORK_CLIP) s->counts[cell]++;
    s->events++;
    s->last = t;
    s->touched = 1;
    return NETWORK_COUNTED;
}

int network_stream_advance(network_stream *s, int64_t t)
{
    if (!s->started || t < s->anchor) return NETWORK_COUNTED;
    if (is_full(s)) return t < s->last ? NETWORK_COUNTED : complete_bin(s);
    return s->base + ((uint64_t)t - (uint64_t)s->anchor) / (uint64_t)NETWORK_BIN_US > s->bin ? complete_bin(s)
                                                                                             : NETWORK_COUNTED;
}

int network_stream_end(network_stream *s)
{
    const int open = s->bin == 0 || s->touched || s->bin % NETWORK_STEPS != 0;
    return open ? complete_bin(s) : NETWORK_COUNTED;
}
