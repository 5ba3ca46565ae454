/* Neurons, sixteen at a time, in exactly the order of the operators' definitions; spikes are listed as they come.

   Each function takes elements begin … end − 1, whose currents are at ``current``, and goes on with a list of ``count``.
   A constant repeats with a period: 16 for one number, the channels' pitch for one a channel, the size for one each;
   begin is a multiple of the first two. */

enum { STATELESS, SUBTRACT, TO_ZERO, GENERAL, ADAPTIVE };

/* Where element ``begin`` finds its constant. */
INLINE int64_t phase(int64_t begin, int64_t period)
{
    return period > begin ? begin : 0;
}

INLINE int64_t next(int64_t k, int64_t period)
{
    return k + LANES < period ? k + LANES : 0;
}

/* Spikes as numbers, in the list, and in the count of those before each sixteen. */
INLINE int64_t emit(i16 fires, float *spikes, int32_t *list, int32_t *starts, int64_t i, int64_t count)
{
    store(spikes + i, where(fires, splat(1.0f)));
    starts[i / LANES] = (int32_t)count;
    return append(list, count, bits_of(fires), (int32_t)i);
}

INLINE int64_t fire_kind(const int kind, const int64_t *r, int64_t begin, int64_t end, const float *current,
                         int64_t count, float *memory, const float *constants, int32_t *events)
{
    const float *membranes = memory + r[FIRE_membrane], *spikes = memory + r[FIRE_spikes];
    float *next_membranes = memory + r[FIRE_next_membrane], *next_spikes = memory + r[FIRE_next_spikes];
    const float *decays = constants + r[FIRE_decay], *thresholds = constants + r[FIRE_threshold];
    const int64_t decay_period = r[FIRE_decay_period], threshold_period = r[FIRE_threshold_period];
    int32_t *list = events + r[FIRE_listed], *starts = events + r[FIRE_starts];
    int64_t kd = phase(begin, decay_period), kt = phase(begin, threshold_period);
    for (int64_t i = begin; i < end; i += LANES) {
        const v16 threshold = load(thresholds + kt);
        v16 h = load(current + i - begin);
        if (kind == SUBTRACT) /* h' = β h + I − θ o */
            h = load(decays + kd) * load(membranes + i) + h - threshold * load(spikes + i);
        if (kind == TO_ZERO) /* h' = β (h (1 − o)) + I */
            h = load(decays + kd) * (load(membranes + i) * (1.0f - load(spikes + i))) + h;
        if (kind != STATELESS) store(next_membranes + i, h);
        count = emit(h >= threshold, next_spikes, list, starts, i, count);
        kd = next(kd, decay_period);
        kt = next(kt, threshold_period);
    }
    return count;
}

static int64_t fire_plain(const int64_t *r, int64_t begin, int64_t end, const float *current, int64_t count,
                          float *memory, const float *constants, int32_t *events)
{
    if (r[FIRE_kind] == SUBTRACT)
        return fire_kind(SUBTRACT, r, begin, end, current, count, memory, constants, events);
    if (r[FIRE_kind] == TO_ZERO)
        return fire_kind(TO_ZERO, r, begin, end, current, count, memory, constants, events);
    return fire_kind(STATELESS, r, begin, end, current, count, memory, constants, events);
}

/* LIF whose spikes nobody reads as numbers: from one step to the next they are bits, a mask for each sixteen neurons.
   Their currents come in registers or from memory. */
INLINE v16 numbers_of(uint32_t spikes)
{
#ifdef __AVX512F__
    return (v16)_mm512_maskz_mov_ps((__mmask16)spikes, _mm512_set1_ps(1.0f));
#else
    const i16 lanes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    return where((lanes & (int32_t)spikes) != 0, splat(1.0f));
#endif
}

INLINE v16 charged(const int kind, v16 h, v16 current, v16 decay, v16 threshold, uint32_t spikes)
{
    if (kind != SUBTRACT) return decay * (h * (1.0f - numbers_of(spikes))) + current;
    h = decay * h + current;
#ifdef __AVX512F__
    return (v16)_mm512_mask_sub_ps((__m512)h, (__mmask16)spikes, (__m512)h, (__m512)threshold);
#else
    return h - threshold * numbers_of(spikes);
#endif
}

typedef struct {
    float *membranes;
    const float *decays, *thresholds;
    int32_t *list, *starts;
    uint16_t *bits;
    int64_t kind, decay_step, threshold_step; /* from one vector to the next: 0 where all have the same constant */
    int decay_each, threshold_each;           /* whether every neuron has its own, in every pixel */
} lean;

/* Constants of the elements from ``begin`` on. */
INLINE lean lean_layer(const int64_t *r, int64_t begin, float *memory, const float *constants, int32_t *events,
                       uint16_t *bits)
{
    const int64_t kd = phase(begin, r[FIRE_decay_period]), kt = phase(begin, r[FIRE_threshold_period]);
    return (lean){
        .membranes = memory + r[FIRE_membrane] + begin,
        .decays = constants + r[FIRE_decay] + kd,
        .thresholds = constants + r[FIRE_threshold] + kt,
        .list = events + r[FIRE_listed],
        .starts = events + r[FIRE_starts] + begin / LANES,
        .bits = bits + (r[FIRE_spikes] + begin) / LANES,
        .kind = r[FIRE_kind],
        .decay_step = r[FIRE_decay_period] == LANES ? 0 : LANES,
        .threshold_step = r[FIRE_threshold_period] == LANES ? 0 : LANES,
        .decay_each = r[FIRE_decay_period] == r[FIRE_size],
        .threshold_each = r[FIRE_threshold_period] == r[FIRE_size],
    };
}

/* Go on with the next pixel, of so many vectors. */
INLINE void next_pixel(const int vectors, lean *l)
{
    l->membranes += vectors * LANES;
    l->starts += vectors;
    l->bits += vectors;
    if (l->decay_each) l->decays += vectors * LANES;
    if (l->threshold_each) l->thresholds += vectors * LANES;
}

/* Sixteen neurons, the v-th from where ``l`` begins; ``i`` is their first's number. */
INLINE int64_t fire_lean(const int kind, const lean *l, int64_t v, v16 current, int64_t i, int64_t count)
{
    const v16 threshold = load(l->thresholds + v * l->threshold_step);
    const v16 before = load(l->membranes + v * LANES), decay = load(l->decays + v * l->decay_step);
    const v16 h = charged(kind, before, current, decay, threshold, l->bits[v]);
    const uint32_t fires = at_least(h, threshold);
    store(l->membranes + v * LANES, h);
    l->bits[v] = (uint16_t)fires;
    l->starts[v] = (int32_t)count;
    return append(l->list, count, fires, (int32_t)i);
}

INLINE int64_t fire_one(const lean *l, int64_t v, v16 current, int64_t i, int64_t count)
{
    return l->kind == SUBTRACT ? fire_lean(SUBTRACT, l, v, current, i, count) : fire_lean(TO_ZERO, l, v, current, i, count);
}

/* The neurons of a block, whose sums are in registers. */
INLINE int64_t fire_sums(const int vectors, const lean *l, const v16 *sums, int64_t i, int64_t count)
{
    if (l->kind == SUBTRACT) {
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) count = fire_lean(SUBTRACT, l, v, sums[v], i + LANES * v, count);
    } else {
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) count = fire_lean(TO_ZERO, l, v, sums[v], i + LANES * v, count);
    }
    return count;
}

/* Bits of spikes from numbers, at the start of a chunk, and numbers from bits at its end. */
static void to_bits(const int64_t *r, const float *memory, uint16_t *bits)
{
    const int64_t at = r[FIRE_spikes];
    for (int64_t i = 0; i < r[FIRE_size]; i += LANES)
        bits[(at + i) / LANES] = (uint16_t)not_zero(load(memory + at + i));
}

static void from_bits(int64_t at, int64_t size, float *memory, const uint16_t *bits)
{
    for (int64_t i = at; i < at + size; i += LANES) store(memory + i, numbers_of(bits[i / LANES]));
}

/* Numbers from a list of spikes. */
static void from_list(int64_t at, int64_t size, int64_t listed, int64_t counted, float *memory, const int32_t *events)
{
    memset(memory + at, 0, (size_t)size * sizeof(float));
    for (int64_t k = 0; k < events[counted]; k++) memory[at + events[listed + k]] = 1.0f;
}

/* With noise: h + κ ε ≥ θ, decided on squares: κ² (ε|ε|) ≥ −(h − θ)|h − θ| */
static int64_t fire_noisy(const int64_t *r, int64_t begin, int64_t end, const float *current, int64_t count,
                          float *memory, const float *constants, int32_t *events)
{
    const int64_t kind = r[FIRE_kind];
    int32_t *list = events + r[FIRE_listed], *starts = events + r[FIRE_starts];
    int64_t kd = phase(begin, r[FIRE_decay_period]), kt = phase(begin, r[FIRE_threshold_period]);
    int64_t kb = phase(begin, r[FIRE_base_period]);
    for (int64_t i = begin; i < end; i += LANES) {
        const v16 threshold = load(constants + r[FIRE_threshold] + kt), noise = load(memory + r[FIRE_noise] + i);
        v16 h = load(current + i - begin), total = load(memory + r[FIRE_arriving] + i);
        if (kind != STATELESS) {
            const v16 decay = load(constants + r[FIRE_decay] + kd), before = load(memory + r[FIRE_membrane] + i);
            const v16 spikes = load(memory + r[FIRE_spikes] + i), kept = 1.0f - spikes;
            v16 variance = load(memory + r[FIRE_variance] + i);
            if (kind == SUBTRACT) h = decay * before + h - threshold * spikes;
            if (kind == TO_ZERO) h = decay * (before * kept) + h;
            if (kind == TO_ZERO) variance = variance * kept;
            total = decay * decay * variance + total;
            store(memory + r[FIRE_next_membrane] + i, h);
            store(memory + r[FIRE_next_variance] + i, total);
            total = total + load(constants + r[FIRE_base] + kb);
        }
        const v16 gap = h - threshold, needed = -(gap * magnitude(gap));
        count = emit(total * (noise * magnitude(noise)) >= needed, memory + r[FIRE_next_spikes], list, starts, i, count);
        kd = next(kd, r[FIRE_decay_period]);
        kt = next(kt, r[FIRE_threshold_period]);
        kb = next(kb, r[FIRE_base_period]);
    }
    return count;
}

/* Every reset, and adaptation; constants stand one after another in the order of the operator's inputs. */
static int64_t fire_general(const int64_t *r, int64_t begin, int64_t end, const float *current, int64_t count,
                            float *memory, const float *constants, int32_t *events)
{
    enum { DECAY, THRESHOLD, ZEROED, TAKEN, LATE_ZEROED, LATE_TAKEN };
    enum { ADAPTATION_DECAY = 6, MEMBRANE_SHARE, SPIKE_SHARE, CURRENT_GAIN, THRESHOLD_GAIN };
    int32_t *list = events + r[GENERAL_listed], *starts = events + r[GENERAL_starts];
    const int64_t period = r[GENERAL_period];
    int64_t k = phase(begin, period);
    for (int64_t i = begin; i < end; i += LANES, k = next(k, period)) {
        const float *p = constants + r[GENERAL_constants] + k;
        const v16 h = load(memory + r[GENERAL_membrane] + i), o = load(memory + r[GENERAL_spikes] + i);
        v16 left = h * (1.0f - load(p + ZEROED * period) * o) - load(p + TAKEN * period) * o;
        v16 x = load(p + DECAY * period) * left + load(current + i - begin), level = load(p + THRESHOLD * period);
        if (r[GENERAL_kind] == ADAPTIVE) { /* a' = δ a + c h + b o */
            v16 a = load(p + ADAPTATION_DECAY * period) * load(memory + r[GENERAL_adaptation] + i);
            a = a + load(p + MEMBRANE_SHARE * period) * h + load(p + SPIKE_SHARE * period) * o;
            x = x - load(p + CURRENT_GAIN * period) * a;
            level = level + load(p + THRESHOLD_GAIN * period) * a;
            store(memory + r[GENERAL_next_adaptation] + i, a);
        }
        x = x * (1.0f - load(p + LATE_ZEROED * period) * o) - load(p + LATE_TAKEN * period) * o;
        store(memory + r[GENERAL_next_membrane] + i, x);
        count = emit(x >= level, memory + r[GENERAL_next_spikes], list, starts, i, count);
    }
    return count;
}

/* Some elements of a layer. Fire and General have size, list, starts and current in the same columns. */
INLINE int64_t fire_part(const int64_t *r, int64_t begin, int64_t end, const float *current, int64_t count,
                         float *memory, const float *constants, int32_t *events)
{
    if (r[0] == FIRE) return fire_plain(r, begin, end, current, count, memory, constants, events);
    if (r[0] == FIRE_NOISY) return fire_noisy(r, begin, end, current, count, memory, constants, events);
    return fire_general(r, begin, end, current, count, memory, constants, events);
}

INLINE void end_spikes(const int64_t *r, int64_t count, int32_t *events)
{
    const int64_t size = r[FIRE_size];
    events[r[FIRE_starts] + size / LANES] = (int32_t)count;
    close_list(events + r[FIRE_listed], count, (int32_t)size);
}

/* A whole layer; its spikes. */
static int64_t fire(const int64_t *r, float *memory, const float *constants, int32_t *events)
{
    const int64_t count = fire_part(r, 0, r[FIRE_size], memory + r[FIRE_current], 0, memory, constants, events);
    end_spikes(r, count, events);
    return count;
}

/* h' = β h + I;   s' = s + h' */
static void leaky_sum(const int64_t *r, float *memory, const float *constants)
{
    for (int64_t i = 0, k = 0; i < r[LEAKY_SUM_size]; i += LANES, k = next(k, r[LEAKY_SUM_decay_period])) {
        const v16 decay = load(constants + r[LEAKY_SUM_decay] + k), current = load(memory + r[LEAKY_SUM_current] + i);
        const v16 h = decay * load(memory + r[LEAKY_SUM_membrane] + i) + current;
        const v16 total = load(memory + r[LEAKY_SUM_total] + i) + h;
        store(memory + r[LEAKY_SUM_next_membrane] + i, h);
        store(memory + r[LEAKY_SUM_next_total] + i, total);
    }
}

/* i' = α i + I */
static void leaky_current(const int64_t *r, float *memory, const float *constants)
{
    for (int64_t i = 0, k = 0; i < r[LEAKY_CURRENT_size]; i += LANES, k = next(k, r[LEAKY_CURRENT_decay_period])) {
        const v16 decay = load(constants + r[LEAKY_CURRENT_decay] + k);
        const v16 left = decay * load(memory + r[LEAKY_CURRENT_synaptic] + i);
        store(memory + r[LEAKY_CURRENT_next_synaptic] + i, left + load(memory + r[LEAKY_CURRENT_current] + i));
    }
}
