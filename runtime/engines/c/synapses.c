/* Synapses on event lists: every active input adds its row of weights to sums that stay in registers.

   Weights lie in blocks of outputs, [rows][width] each; the last row of a block is zeros. Sums are exact on the grid,
   so the order in which events come cannot show: several sums run beside each other where a block is narrow. */

enum { NO_BIAS = -1, ADD_TO_SUM = -2 };

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

INLINE void add_inputs(const int vectors, v16 *sums, const int64_t *r, int64_t done, const float *memory,
                       const float *constants, const int32_t *events)
{
    const float *weights = constants + r[LINEAR_weights] + done * r[LINEAR_inputs];
    const int32_t *list = events + r[LINEAR_listed];
    const int64_t count = events[r[LINEAR_counted]];
    if (r[LINEAR_graded] && !events[r[LINEAR_plain]])
        add_graded(vectors, sums, weights, list, count, memory + r[LINEAR_source], list);
    else
        add_listed(vectors, sums, weights, list, count);
}

INLINE int64_t block_width(int64_t left)
{
    int64_t width = WIDEST;
    while (width > left) width /= 2;
    return width;
}

