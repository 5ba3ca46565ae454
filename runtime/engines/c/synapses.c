/* Synapses on event lists: every active input adds its row of weights to sums that stay in registers.

   Weights lie in blocks of outputs, [rows][width] each; the last row of a block is zeros. Sums are exact on the grid,
   so the order in which events come cannot show: several sums run beside each other where a block is narrow. */

enum { NO_BIAS = -1, ADD_TO_SUM = -2 };
enum { FLOATS, SHORTS, BYTES }; /* how weights are stored: see narrow.py */

typedef struct {
    float *memory;
    const float *constants;
    int32_t *events;
    uint16_t *bits;
    const int16_t *shorts;
    const int8_t *bytes;
} arrays;

/* sums + Σ_k w[list_k], for a block of vectors · 16 outputs; behind its end the list has rows of zeros */
INLINE void add_listed(const int vectors, v16 *sums, const float *weights, const int32_t *list, int64_t count)
{
    const int beside = vectors <= 2 ? 4 : vectors == 4 ? 2 : 1, width = vectors * LANES;
    v16 parts[4][16];
#pragma GCC unroll 4
    for (int p = 0; p < beside; p++)
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) parts[p][v] = p == 0 ? sums[v] : (v16){0};
    for (int64_t k = 0; k < count; k += beside)
#pragma GCC unroll 4
        for (int p = 0; p < beside; p++) {
            const float *row = weights + (int64_t)list[k + p] * width;
            AS_IT_IS(row);
#pragma GCC unroll 16
            for (int v = 0; v < vectors; v++) parts[p][v] += load(row + LANES * v);
        }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) {
        sums[v] = parts[0][v];
#pragma GCC unroll 4
        for (int p = 1; p < beside; p++) sums[v] += parts[p][v];
    }
}

/* The same with weights n · unit: the n are added as integers, which is exact as well. */
INLINE void add_shorts(const int vectors, v16 *sums, const int16_t *weights, float unit, const int32_t *list,
                       int64_t count)
{
    const int beside = vectors <= 2 ? 4 : vectors == 4 ? 2 : 1, width = vectors * LANES;
    i16 parts[4][16];
#pragma GCC unroll 4
    for (int p = 0; p < beside; p++)
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) parts[p][v] = (i16){0};
    for (int64_t k = 0; k < count; k += beside)
#pragma GCC unroll 4
        for (int p = 0; p < beside; p++) {
            const int16_t *row = weights + (int64_t)list[k + p] * width;
            AS_IT_IS(row);
#pragma GCC unroll 16
            for (int v = 0; v < vectors; v++) parts[p][v] += load_shorts(row + LANES * v);
        }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) {
#pragma GCC unroll 4
        for (int p = 1; p < beside; p++) parts[0][v] += parts[p][v];
        sums[v] += floats(parts[0][v]) * unit;
    }
}

/* Of bytes, sums of 16 bits; two vectors at a time, and where there is one, what is behind it is not used. */
INLINE void add_bytes(const int vectors, v16 *sums, const int8_t *weights, float unit, const int32_t *list,
                      int64_t count)
{
    const int pairs = (vectors + 1) / 2, beside = pairs <= 2 ? 4 : pairs == 4 ? 2 : 1, width = vectors * LANES;
    short32 parts[4][8];
#pragma GCC unroll 4
    for (int p = 0; p < beside; p++)
#pragma GCC unroll 8
        for (int v = 0; v < pairs; v++) parts[p][v] = (short32){0};
    for (int64_t k = 0; k < count; k += beside)
#pragma GCC unroll 4
        for (int p = 0; p < beside; p++) {
            const int8_t *row = weights + (int64_t)list[k + p] * width;
            AS_IT_IS(row);
#pragma GCC unroll 8
            for (int v = 0; v < pairs; v++) parts[p][v] += load_bytes(row + 2 * LANES * v);
        }
#pragma GCC unroll 8
    for (int v = 0; v < pairs; v++)
#pragma GCC unroll 4
        for (int p = 1; p < beside; p++) parts[0][v] += parts[p][v];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) sums[v] += floats(half(parts[0][v / 2], v % 2)) * unit;
}

/* sums + Σ_k x_k w[list_k] */
INLINE void add_graded(const int vectors, v16 *sums, const float *weights, const int32_t *list, int64_t count,
                       const float *x, const int32_t *inputs)
{
    for (int64_t k = 0; k < count; k++) {
        const float *row = weights + (int64_t)list[k] * (vectors * LANES), value = x[inputs[k]];
        AS_IT_IS(row);
#pragma GCC unroll 16
        for (int v = 0; v < vectors; v++) sums[v] = add_product(sums[v], value, load(row + LANES * v));
    }
}

/* What sums begin at: a bias, nothing, or what is there already. */
INLINE void begin_sums(const int vectors, v16 *sums, int64_t bias, const float *constants, const float *out)
{
    const float *from = bias >= 0 ? constants + bias : out;
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) sums[v] = bias == NO_BIAS ? (v16){0} : load(from + LANES * v);
}

/* Spikes through weights that begin at ``at``, however they are stored. */
INLINE void add_spikes(const int vectors, v16 *sums, int64_t stored, int64_t unit, int64_t at, const int32_t *list,
                       int64_t count, const arrays *a)
{
    if (USES_SHORTS && stored == SHORTS) add_shorts(vectors, sums, a->shorts + at, unit_of(unit), list, count);
    else if (USES_BYTES && stored == BYTES) add_bytes(vectors, sums, a->bytes + at, unit_of(unit), list, count);
    else add_listed(vectors, sums, a->constants + at, list, count);
}

INLINE void add_inputs(const int vectors, v16 *sums, const int64_t *r, int64_t done, const arrays *a)
{
    const int64_t at = r[LINEAR_weights] + done * r[LINEAR_inputs], count = a->events[r[LINEAR_counted]];
    const int32_t *list = a->events + r[LINEAR_listed];
    if (r[LINEAR_graded] && !a->events[r[LINEAR_plain]])
        add_graded(vectors, sums, a->constants + at, list, count, a->memory + r[LINEAR_source], list);
    else
        add_spikes(vectors, sums, r[LINEAR_stored], r[LINEAR_unit], at, list, count, a);
}

INLINE int64_t block_width(int64_t left)
{
    int64_t width = WIDEST;
    while (width > left) width /= 2;
    return width;
}

