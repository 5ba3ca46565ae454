/* Synapses on event lists: every active input adds its row of weights to sums that stay in registers.

   Weights lie in blocks of outputs, each [rows][width]; the last row of a block is zeros. Sums are exact on the
   grid, so the order of events does not matter, and narrow blocks use several sums in parallel. Weights n·2^−s whose
   n fits into 16 or 8 bits are added as integers, which is exact as well. */

/* A core that is made for one network leaves out the parts that the network does not use. */
#ifndef USES_CONVOLUTIONS
#define USES_CONVOLUTIONS 1
#define USES_FLOATS 1
#define USES_SHORTS 1
#define USES_BYTES 1
#endif

enum { FLOATS, SHORTS, BYTES }; /* storage of weights: see runtime/codegen/weights.py */
enum { NO_BIAS = -1, ADD_TO_SUM = -2 };
enum { MOST_BYTES = 256 }; /* 256 · 127 < 2¹⁵ */

/* The columns that both kinds of synapses have; their rows begin alike. */
typedef struct {
    const int8_t *weights;
    int64_t rows; /* of a block */
    int32_t size; /* outputs, with padding */
    int32_t stored, unit;
    const scalar *x; /* values of graded inputs; NULL if every event is a spike */
    int few;         /* whether these are counts of at most MOST_BYTES in all */
} synapse;

/* Whether events have values; all values of an input may be 1 in this step. */
INLINE int is_graded(const program *p, const int32_t *r)
{
    return r[LINEAR_graded] && !p->events[r[LINEAR_plain]];
}

/* Whether an input holds counts of at most MOST_BYTES in all; only a core without floats asks. */
INLINE int is_few(const program *p, const int32_t *r)
{
    int32_t total = 0;
#ifdef CORE_WHOLE
    const int32_t *list = p->events + r[LINEAR_listed], count = p->events[r[LINEAR_counted]];
    for (int32_t k = 0; k < count; k++) {
        const scalar value = p->memory[r[LINEAR_source] + list[k]];
        if (value < 0 || value > MOST_BYTES) return 0;
        total += value;
        if (total > MOST_BYTES) return 0;
    }
    return 1;
#else
    (void)p, (void)r;
    return total;
#endif
}

INLINE synapse synapse_of(const program *p, const int32_t *r, int64_t rows, int32_t size)
{
    const int graded = is_graded(p, r);
    return (synapse){.weights = p->weights + 64 * (int64_t)r[LINEAR_weights], .rows = rows, .size = size,
                     .stored = r[LINEAR_stored], .unit = r[LINEAR_unit],
                     .x = graded ? p->memory + r[LINEAR_source] : NULL, .few = graded && is_few(p, r)};
}

/* Number of parallel sums of one output: enough to hide the latency of an addition. */
#define BESIDE(vectors) (LANES == 1 ? 1 : (vectors) <= 2 ? 4 : (vectors) == 4 ? 2 : 1)

/* Computes sums + Σ_k w[list_k] for a block of vectors · LANES outputs; the list is followed by rows of zeros. */
INLINE void add_floats(const int vectors, scalar *sums, const scalar *weights, int64_t stride, const int32_t *list,
                       int32_t count)
{
    const int beside = BESIDE(vectors);
    vec parts[4][MOST_VECTORS];
    UNROLL(4)
    for (int p = 0; p < beside; p++)
        UNROLL(16)
        for (int v = 0; v < vectors; v++) parts[p][v] = p == 0 ? load(sums + LANES * v) : splat(0);
    for (int32_t k = 0; k < count; k += beside)
        UNROLL(4)
        for (int p = 0; p < beside; p++) {
            const scalar *row = weights + list[k + p] * stride;
            AS_IT_IS(row);
            UNROLL(16)
            for (int v = 0; v < vectors; v++) parts[p][v] += load(row + LANES * v);
        }
    UNROLL(16)
    for (int v = 0; v < vectors; v++) {
        UNROLL(4)
        for (int p = 1; p < beside; p++) parts[0][v] += parts[p][v];
        store(sums + LANES * v, parts[0][v]);
    }
}

#if HAS_PLACES
/* Two vectors at a time. */
INLINE void add_pairs_of_shorts(const int vectors, scalar *sums, const int16_t *weights, int64_t stride, scalar unit,
                                const int32_t *list, int32_t count)
{
    const int pairs = vectors / 2, beside = BESIDE(vectors);
    sums16 even[4][MOST_VECTORS / 2], odd[4][MOST_VECTORS / 2];
    UNROLL(4)
    for (int p = 0; p < beside; p++)
        UNROLL(8)
        for (int v = 0; v < pairs; v++) even[p][v] = odd[p][v] = no_sums();
    for (int32_t k = 0; k < count; k += beside)
        UNROLL(4)
        for (int p = 0; p < beside; p++) {
            const int16_t *row = weights + list[k + p] * stride;
            AS_IT_IS(row);
            UNROLL(8)
            for (int v = 0; v < pairs; v++) add_places(&even[p][v], &odd[p][v], row + 2 * LANES * v);
        }
    UNROLL(8)
    for (int v = 0; v < pairs; v++) {
        UNROLL(4)
        for (int p = 1; p < beside; p++) {
            even[0][v] = (sums16)((ivec)even[0][v] + (ivec)even[p][v]);
            odd[0][v] = (sums16)((ivec)odd[0][v] + (ivec)odd[p][v]);
        }
        UNROLL(2)
        for (int n = 0; n < 2; n++) {
            scalar *out = sums + LANES * (2 * v + n);
            store(out, load(out) + floats(half_of_places(even[0][v], odd[0][v], n)) * splat(unit));
        }
    }
}
#endif

INLINE void add_shorts(const int vectors, scalar *sums, const int16_t *weights, int64_t stride, scalar unit,
                       const int32_t *list, int32_t count)
{
#if HAS_PLACES
    if (vectors > 1) {
        add_pairs_of_shorts(vectors, sums, weights, stride, unit, list, count);
        return;
    }
#endif
    const int beside = BESIDE(vectors);
    ivec parts[4][MOST_VECTORS];
    UNROLL(4)
    for (int p = 0; p < beside; p++)
        UNROLL(16)
        for (int v = 0; v < vectors; v++) parts[p][v] = isplat(0);
    for (int32_t k = 0; k < count; k += beside)
        UNROLL(4)
        for (int p = 0; p < beside; p++) {
            const int16_t *row = weights + list[k + p] * stride;
            AS_IT_IS(row);
            UNROLL(16)
            for (int v = 0; v < vectors; v++) parts[p][v] += load_shorts(row + LANES * v);
        }
    UNROLL(16)
    for (int v = 0; v < vectors; v++) {
        UNROLL(4)
        for (int p = 1; p < beside; p++) parts[0][v] += parts[p][v];
        store(sums + LANES * v, load(sums + LANES * v) + floats(parts[0][v]) * splat(unit));
    }
}

#if LANES == 16
/* Adds at most MOST_BYTES bytes in 16-bit sums, two vectors at a time; the second half of a single vector is
   ignored. */
INLINE void add_bytes(const int vectors, scalar *sums, const int8_t *weights, int64_t stride, scalar unit,
                      const int32_t *list, int32_t count)
{
    const int pairs = (vectors + 1) / 2, beside = BESIDE(pairs);
    short32 parts[4][(MOST_VECTORS + 1) / 2];
    UNROLL(4)
    for (int p = 0; p < beside; p++)
        UNROLL(8)
        for (int v = 0; v < pairs; v++) parts[p][v] = (short32){0};
    for (int32_t k = 0; k < count; k += beside)
        UNROLL(4)
        for (int p = 0; p < beside; p++) {
            const int8_t *row = weights + list[k + p] * stride;
            AS_IT_IS(row);
            UNROLL(8)
            for (int v = 0; v < pairs; v++) parts[p][v] += load_bytes(row + 2 * LANES * v);
        }
    UNROLL(8)
    for (int v = 0; v < pairs; v++)
        UNROLL(4)
        for (int p = 1; p < beside; p++) parts[0][v] += parts[p][v];
    UNROLL(16)
    for (int v = 0; v < vectors; v++)
        store(sums + LANES * v, load(sums + LANES * v) + floats(half(parts[0][v / 2], v % 2)) * splat(unit));
}
#else
/* Whether a word's lowest byte comes first in memory. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define IN_WORDS 1
#else
#define IN_WORDS 0
#endif

/* Computes sums + Σ_k x_k w[list_k] for eight outputs as two words. A byte holds w + 128, which is never negative, so
   bytes 0 and 2 of a word add up in one register and bytes 1 and 3 in another, in 16 bits each: Σ x is at most
   MOST_BYTES. Without `x` every event counts once. */
INLINE void add_words(scalar *sums, const int8_t *weights, int32_t stride, scalar unit, const int32_t *list,
                      int32_t count, const scalar *x, const int32_t *inputs)
{
    const uint32_t apart = 0x00ff00ffu;
    uint32_t even[2] = {0, 0}, odd[2] = {0, 0}, total = 0;
    for (int32_t k = 0; k < count; k++) {
        const uint32_t times = x ? (uint32_t)x[inputs[k]] : 1;
        const int8_t *row = weights + list[k] * stride;
        total += times;
        UNROLL(2)
        for (int v = 0; v < 2; v++) {
            uint32_t word;
            memcpy(&word, row + 4 * v, sizeof word);
            const uint32_t raised = word ^ 0x80808080u;
            even[v] += (raised & apart) * times;
            odd[v] += (raised >> 8 & apart) * times;
        }
    }
    UNROLL(2)
    for (int v = 0; v < 2; v++) {
        const int32_t less = (int32_t)total * 128;
        scalar *out = sums + 4 * v;
        out[0] += (scalar)((int32_t)(even[v] & 0xffff) - less) * unit;
        out[1] += (scalar)((int32_t)(odd[v] & 0xffff) - less) * unit;
        out[2] += (scalar)((int32_t)(even[v] >> 16) - less) * unit;
        out[3] += (scalar)((int32_t)(odd[v] >> 16) - less) * unit;
    }
}

INLINE void add_bytes(const int vectors, scalar *sums, const int8_t *weights, int64_t stride, scalar unit,
                      const int32_t *list, int32_t count)
{
    if (IN_WORDS && vectors == 8) {
        add_words(sums, weights, (int32_t)stride, unit, list, count, NULL, NULL);
        return;
    }
    int32_t parts[MOST_VECTORS] = {0};
    for (int32_t k = 0; k < count; k++)
        for (int v = 0; v < vectors; v++) parts[v] += weights[list[k] * stride + v];
    for (int v = 0; v < vectors; v++) sums[v] += (scalar)parts[v] * unit;
}
#endif

/* Computes sums + Σ_k x_k w[list_k] for graded inputs, with x_k at inputs[k]. Products and sums are exact in float32
   for every storage of weights, so all are computed as floats. */
INLINE void add_graded(const int stored, const int vectors, scalar *sums, const synapse *s, int64_t at, int64_t stride,
                       const int32_t *list, int32_t count, const int32_t *inputs)
{
    const scalar unit = unit_of(s->unit);
    vec parts[MOST_VECTORS];
    UNROLL(16)
    for (int v = 0; v < vectors; v++) parts[v] = load(sums + LANES * v);
    for (int32_t k = 0; k < count; k++) {
        const int64_t row = at + list[k] * stride;
        const scalar value = stored == FLOATS ? s->x[inputs[k]] : s->x[inputs[k]] * unit;
        UNROLL(16)
        for (int v = 0; v < vectors; v++) {
            const int64_t w = row + LANES * v;
            vec weights;
            if (stored == FLOATS) weights = load((const scalar *)(const void *)s->weights + w);
            else if (stored == SHORTS) weights = floats(load_shorts((const int16_t *)(const void *)s->weights + w));
            else weights = floats(load_small(s->weights + w));
            parts[v] = add_product(parts[v], value, weights);
        }
    }
    UNROLL(16)
    for (int v = 0; v < vectors; v++) store(sums + LANES * v, parts[v]);
}

/* Adds events through the weights of some outputs, which begin at `at` in the first row of their block. */
INLINE void add_events(const int stored, const int vectors, scalar *sums, const synapse *s, int64_t at, int64_t stride,
                       const int32_t *list, int32_t count, const int32_t *inputs)
{
    const scalar unit = unit_of(s->unit);
#ifdef CORE_WHOLE
    if (IN_WORDS && s->few && stored == BYTES && vectors == 8) {
        add_words(sums, s->weights + at, (int32_t)stride, unit, list, count, s->x, inputs);
        return;
    }
#endif
    if (RARE(s->x)) add_graded(stored, vectors, sums, s, at, stride, list, count, inputs);
    else if (stored == SHORTS)
        add_shorts(vectors, sums, (const int16_t *)(const void *)s->weights + at, stride, unit, list, count);
    else if (stored == BYTES)
        for (int32_t k = 0; k < count; k += MOST_BYTES) /* a sum of this many cannot overflow 16 bits */
            add_bytes(vectors, sums, s->weights + at, stride, unit, list + k,
                      count - k < MOST_BYTES ? count - k : MOST_BYTES);
    else add_floats(vectors, sums, (const scalar *)(const void *)s->weights + at, stride, list, count);
}

/* Returns the widest block of outputs that fits into the remaining ones. */
INLINE int32_t block_width(int32_t left)
{
    int32_t width = WIDEST;
    while (width > left) width /= 2;
    return width;
}

/* A part of a block: `vectors` vectors from output `done` on; `at` is its position in the block's first row. */
typedef struct {
    int32_t done, vectors, width;
    int64_t at;
} part;

INLINE part part_at(const synapse *s, int32_t done)
{
    int32_t begin = 0, width = block_width(s->size);
    while (begin + width <= done) {
        begin += width;
        width = block_width(s->size - begin);
    }
    const int32_t left = (begin + width - done) / LANES, few = LANES == 1 ? 1 : left; /* saves flash */
    return (part){.done = done, .vectors = left < MOST_VECTORS ? few : MOST_VECTORS, .width = width,
                  .at = begin * s->rows + (done - begin)};
}

/* Calls `what(stored, vectors, …)` with both as constants, so that loops over vectors are unrolled. */
#define FOR_STORED(vectors, stored_, what, ...)                                                                        \
    if (USES_SHORTS && stored_ == SHORTS) what(SHORTS, vectors, __VA_ARGS__);                                          \
    else if (USES_BYTES && stored_ == BYTES) what(BYTES, vectors, __VA_ARGS__);                                        \
    else if (USES_FLOATS) what(FLOATS, vectors, __VA_ARGS__);
#if LANES == 1
#define FOR_VECTORS(stored_, vectors_, what, ...)                                                                      \
    if (vectors_ == MOST_VECTORS) { FOR_STORED(MOST_VECTORS, stored_, what, __VA_ARGS__) }                             \
    else { FOR_STORED(1, stored_, what, __VA_ARGS__) }
#else
#if MOST_VECTORS == 16
#define FOR_MANY(stored_, what, ...)                                                                                   \
    case 16: FOR_STORED(16, stored_, what, __VA_ARGS__) break;                                                         \
    case 8: FOR_STORED(8, stored_, what, __VA_ARGS__) break;
#else
#define FOR_MANY(stored_, what, ...)
#endif
#define FOR_VECTORS(stored_, vectors_, what, ...)                                                                      \
    switch (vectors_) {                                                                                                \
        FOR_MANY(stored_, what, __VA_ARGS__)                                                                           \
    case 4: FOR_STORED(4, stored_, what, __VA_ARGS__) break;                                                           \
    case 2: FOR_STORED(2, stored_, what, __VA_ARGS__) break;                                                           \
    default: FOR_STORED(1, stored_, what, __VA_ARGS__) break;                                                          \
    }
#endif

/* Initialises sums with a bias, which repeats for every pixel, or with zero, or leaves them as they are. */
INLINE void begin_sums(const program *p, int32_t bias, scalar *sums, int32_t pitch, int32_t size)
{
    if (bias == NO_BIAS) memset(sums, 0, (size_t)size * sizeof *sums);
    if (bias < 0) return;
    const scalar *from = p->constants + bias;
    for (scalar *end = sums + size; sums < end; sums += pitch)
        for (int32_t i = 0; i < pitch; i += LANES) store(sums + i, load(from + i));
}
