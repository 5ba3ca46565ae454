/* Layers: sums of one synapse, or of two that share them, and the neurons that take them while they are in registers. */

/* One block of outputs; ``fire`` is a layer whose spikes are bits, or nothing. The spikes so far. */
INLINE int64_t linear_block(const int vectors, const int64_t *r, const int64_t *more, const int64_t *fire,
                            int64_t done, int64_t fired, const arrays *a)
{
    v16 sums[16];
    float *out = a->memory + r[LINEAR_out] + done;
    begin_sums(vectors, sums, r[LINEAR_bias] >= 0 ? r[LINEAR_bias] + done : r[LINEAR_bias], a->constants, out);
    add_inputs(vectors, sums, r, done, a);
    if (more) add_inputs(vectors, sums, more, done, a);
    if (!fire) {
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) store(out + LANES * v, sums[v]);
        return fired;
    }
    const lean layer = lean_layer(fire, done, a->memory, a->constants, a->events, a->bits);
    return fire_sums(vectors, &layer, sums, done, fired);
}

/* W·x + b of one synapse, or of two that share a sum; the spikes of a layer that takes it, or 0. */
static int64_t linear(const int64_t *r, const int64_t *more, const int64_t *fire, const arrays *a)
{
    int64_t fired = 0;
    for (int64_t done = 0, width; done < r[LINEAR_size]; done += width) {
        width = block_width(r[LINEAR_size] - done);
        switch (width) {
#if WIDEST == 256
        case 256: fired = linear_block(16, r, more, fire, done, fired, a); break;
        case 128: fired = linear_block(8, r, more, fire, done, fired, a); break;
#endif
        case 64: fired = linear_block(4, r, more, fire, done, fired, a); break;
        case 32: fired = linear_block(2, r, more, fire, done, fired, a); break;
        default: fired = linear_block(1, r, more, fire, done, fired, a); break;
        }
    }
    if (fire) end_spikes(fire, fired, a->events);
    return fired;
}

/* A whole layer from currents in memory; its spikes. Constants of channels begin anew with every pixel. */
static int64_t fire_all(const int64_t *r, int is_lean, const arrays *a)
{
    if (!is_lean) return fire(r, a->memory, a->constants, a->events);
    const int64_t size = r[FIRE_size], longer = r[FIRE_decay_period] > LANES ? r[FIRE_decay_period] : size;
    const int64_t pixel = r[FIRE_threshold_period] > LANES && r[FIRE_threshold_period] < longer
                              ? r[FIRE_threshold_period] : longer;
    int64_t fired = 0;
    for (int64_t begin = 0; begin < size; begin += pixel) {
        const lean layer = lean_layer(r, begin, a->memory, a->constants, a->events, a->bits);
        for (int64_t i = begin, v = 0; i < begin + pixel; i += LANES, v++) {
            const v16 current = load(a->memory + r[FIRE_current] + i);
            fired = fire_one(&layer, v, current, i, fired);
        }
    }
    end_spikes(r, fired, a->events);
    return fired;
}
