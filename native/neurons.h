/* Layers of neurons. One step of LANES neurons is generated from the operator's definition (step_… in generated.h).
   This file passes a layer's elements to it and lists its spikes. */

/* Spikes that no instruction reads as numbers are kept as bits between steps, if a vector has sixteen lanes. */
#define BITS_OF_SPIKES (LANES == 16)
#if !BITS_OF_SPIKES
#define LEAN(turn) 0
#else
#define LEAN(turn) ((turn)[TURN_LEAN] & LEAN_SPIKES)
#endif

INLINE layer layer_of(const program *p, const int32_t *r)
{
    layer l = {.constants = p->constants + r[NEURONS_constants], .period = r[NEURONS_period]};
    for (int n = 0; n < MOST_OPERANDS; n++) l.in[n] = p->memory + r[NEURONS_in_0 + n];
    for (int n = 0; n < MOST_RESULTS; n++) l.out[n] = p->memory + r[NEURONS_out_0 + n];
    l.spikes = p->memory + r[NEURONS_spikes];
    l.next_spikes = p->memory + r[NEURONS_next_spikes];
    l.bits = p->bits + r[NEURONS_next_spikes] / 16;
    l.list = p->events + r[NEURONS_listed];
    l.starts = p->events + r[NEURONS_starts];
    l.pitch = r[NEURONS_pitch];
    l.same = r[NEURONS_same];
    l.each = r[NEURONS_each];
    return l;
}

/* Elements begin … end − 1, in whole pixels, with their currents at `current`; the list continues at `count`. There
   is one version for spikes as bits and one for numbers: a loop with a check would run out of registers. */
#define TAKE_NEURONS(NAME, READS, FIRES)                                                                               \
    INLINE int32_t pixels_of_##NAME(const layer *l, const int lean, int32_t begin, int32_t end, const scalar *current,  \
                                    int32_t count)                                                                     \
    {                                                                                                                  \
        const int32_t pitch = l->pitch, ahead = l->same ? 0 : LANES;                                                   \
        int32_t *starts = l->starts + begin / pitch;                                                                   \
        uint16_t *bits = l->bits + begin / LANES;                                                                      \
        for (int32_t pixel = begin; pixel < end; pixel += pitch) {                                                     \
            const scalar *k = l->constants + (l->each ? pixel : 0);                                                     \
            if (FIRES) *starts++ = count;                                                                              \
            for (int32_t i = pixel; i < pixel + pitch; i += LANES, k += ahead, current += LANES, bits++) {             \
                vec spikes = splat(0);                                                                              \
                if (READS) spikes = lean ? numbers_of(*bits) : load(l->spikes + i);                                    \
                const mask fires = step_##NAME(l, i, k, load(current), spikes);                                        \
                if (FIRES && lean) *bits = (uint16_t)fires;                                                            \
                if (FIRES && !lean) store(l->next_spikes + i, numbers_of(fires));                                      \
                if (FIRES) count = append(l->list, count, fires, i);                                                   \
            }                                                                                                          \
        }                                                                                                              \
        return count;                                                                                                  \
    }                                                                                                                  \
    NOINLINE int32_t take_##NAME(const program *p, const int32_t *r, int lean, int32_t begin, int32_t end,             \
                                 const scalar *current, int32_t count)                                                  \
    {                                                                                                                  \
        const layer own = layer_of(p, r), *l = &own; /* a local copy stays in registers */                             \
        if (BITS_OF_SPIKES && lean) return pixels_of_##NAME(l, 1, begin, end, current, count);                         \
        return pixels_of_##NAME(l, 0, begin, end, current, count);                                                     \
    }
EACH_NEURON(TAKE_NEURONS)

INLINE int32_t take_neurons(const program *p, const int32_t *r, int lean, int32_t begin, int32_t end,
                            const scalar *current, int32_t count)
{
    (void)p, (void)lean, (void)begin, (void)end, (void)current; /* not used if a network has no neurons */
#define CASE(NAME, READS, FIRES)                                                                                       \
    case NEURON_##NAME: return take_##NAME(p, r, lean, begin, end, current, count);
    switch (r[NEURONS_op]) {
        EACH_NEURON(CASE)
    default: return count;
    }
#undef CASE
}

/* Ends a layer's list after all its elements were computed. */
INLINE void end_spikes(const program *p, const int32_t *r, int32_t count)
{
    if (!r[NEURONS_fires]) return;
    p->events[r[NEURONS_starts] + r[NEURONS_size] / r[NEURONS_pitch]] = count;
    close_list(p->events + r[NEURONS_listed], count, r[NEURONS_size]);
}

/* Runs a whole layer on currents in memory; returns its number of spikes. */
static int32_t take_layer(const program *p, const int32_t *r, int lean)
{
    const int32_t count = take_neurons(p, r, lean, 0, r[NEURONS_size], p->memory + r[NEURONS_in_0], 0);
    end_spikes(p, r, count);
    return count;
}

/* Convert spikes from numbers to bits at the start of a chunk, and back at its end. */
static void to_bits(const program *p, const int32_t *r)
{
    const int32_t at = r[NEURONS_spikes];
    for (int32_t i = at; i < at + r[NEURONS_size]; i += LANES) p->bits[i / 16] = (uint16_t)not_zero(load(p->memory + i));
}

static void from_bits(const program *p, const int32_t *r)
{
    const int32_t at = r[NEURONS_spikes];
    for (int32_t i = at; i < at + r[NEURONS_size]; i += LANES) store(p->memory + i, numbers_of(p->bits[i / 16]));
}
