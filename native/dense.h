/* Dense products, for layers where many inputs are active: tiles of some rows of inputs (pixels of an image's row, or time
   steps) times some vectors of outputs stay in registers, and every weight that is read serves all rows of the tile.

   Spikes and counts are small integers, so integer weights go through integer dot products: pairs of 16 bits (SHORTS) or
   quads of 8 (BYTES). They lie [taps][inputs / group][outputs][group], beside the rows for event lists. */

#if HAS_PAIRS

/* Shares of active inputs from which the dense form is faster; measured by benchmarks/crossings.py. */
#define DENSE_FROM(stored) ((stored) == BYTES ? DENSE_BYTES : DENSE_SHORTS)
#if HAS_AVX512
enum { ROWS_OF_4 = 6, ROWS_OF_2 = 8, ROWS_OF_1 = 8 };
#else
enum { ROWS_OF_4 = 1, ROWS_OF_2 = 2, ROWS_OF_1 = 4 };
#endif

/* Where a tile finds its inputs and weights: `taps` pieces of `inputs` each. */
typedef struct {
    const int16_t *x;         /* of the first row's first tap; quads are bytes */
    const int32_t *offsets;   /* of each tap, in elements */
    const int8_t *weights;    /* of the first output */
    int64_t row_step, out_step; /* from one row to the next */
    int32_t taps, inputs, size; /* size: outputs from one group of inputs to the next */
    float unit;
    float *out;
} tile;

/* out += unit · W·x for `rows` rows and `vectors` · 16 outputs from `done` on */
INLINE void add_tile(const int stored, const int vectors, const int rows, const tile *t, int64_t row, int32_t done)
{
    const int group = stored == BYTES ? 4 : 2, width = stored == BYTES ? 1 : 2;
    const int8_t *x = (const int8_t *)t->x + row * t->row_step * width;
    const int8_t *w = t->weights + (int64_t)done * group * width;
    const int64_t weights_step = (int64_t)t->size * group * width;
    sums16 sums[8][8];
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        UNROLL(8)
        for (int v = 0; v < vectors; v++) sums[n][v] = no_sums();
    for (int32_t tap = 0; tap < t->taps; tap++) {
        const int8_t *at = x + (int64_t)t->offsets[tap] * width;
        for (int32_t i = 0; i < t->inputs; i += group, w += weights_step, at += group * width) {
            int32_t some[8];
            UNROLL(8)
            for (int n = 0; n < rows; n++) memcpy(some + n, at + n * t->row_step * width, sizeof *some);
            UNROLL(8)
            for (int v = 0; v < vectors; v++)
                UNROLL(8)
                for (int n = 0; n < rows; n++) {
#if HAS_QUADS
                    if (stored == BYTES) sums[n][v] = add_quads(sums[n][v], w + 64 * v, some[n]);
                    else
#endif
                        sums[n][v] = add_pairs(sums[n][v], (const int16_t *)(const void *)w + 32 * v, some[n]);
                }
        }
    }
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        UNROLL(8)
        for (int v = 0; v < vectors; v++) {
            float *out = t->out + (row + n) * t->out_step + done + LANES * v;
            store(out, load(out) + floats(sums_of(sums[n][v])) * splat(t->unit));
        }
}

/* All rows of one part of the outputs. */
INLINE void add_tiles_of(const int stored, const int vectors, const int most, const tile *t, int32_t rows, int32_t done)
{
    int32_t row = 0;
    for (; row + most <= rows; row += most) add_tile(stored, vectors, most, t, row, done);
    if (most > 4 && rows - row >= 4) {
        add_tile(stored, vectors, 4, t, row, done);
        row += 4;
    }
    if (most > 2 && rows - row >= 2) {
        add_tile(stored, vectors, 2, t, row, done);
        row += 2;
    }
    for (; row < rows; row++) add_tile(stored, vectors, 1, t, row, done);
}

INLINE void add_tiles_stored(const int stored, const tile *t, int32_t rows, int32_t outputs)
{
    for (int32_t done = 0; done < outputs;) {
        const int32_t left = (outputs - done) / LANES;
#if HAS_AVX512
        if (rows == 1 && left >= 8) {
            add_tile(stored, 8, 1, t, 0, done);
            done += 8 * LANES;
            continue;
        }
#endif
        if (left >= 4) {
            add_tiles_of(stored, 4, ROWS_OF_4, t, rows, done);
            done += 4 * LANES;
        } else if (left >= 2) {
            add_tiles_of(stored, 2, ROWS_OF_2, t, rows, done);
            done += 2 * LANES;
        } else {
            add_tiles_of(stored, 1, ROWS_OF_1, t, rows, done);
            done += LANES;
        }
    }
}

static void add_tiles(int stored, const tile *t, int32_t rows, int32_t outputs)
{
#if HAS_QUADS
    if (stored == BYTES) {
        add_tiles_stored(BYTES, t, rows, outputs);
        return;
    }
#endif
    add_tiles_stored(SHORTS, t, rows, outputs);
}

/* Whether a synapse has weights for dense products, and so many of its inputs are active that they pay. */
INLINE int is_dense(const program *p, const int32_t *r, int32_t inputs)
{
    if (r[LINEAR_dense] < 0 || (r[LINEAR_dense_stored] == BYTES && !HAS_QUADS)) return 0;
    return (int64_t)p->events[r[LINEAR_counted]] * 100 > (int64_t)DENSE_FROM(r[LINEAR_dense_stored]) * inputs;
}

/* A list's events as small integers, in units of 2^−bits; each at its own place from `to` on. */
INLINE void pack_listed(const program *p, const int32_t *r, int32_t from, int32_t end, int32_t minus, int16_t *to)
{
    const int32_t *list = p->events + r[LINEAR_listed];
    const int graded = r[LINEAR_graded] && !p->events[r[LINEAR_plain]], bytes = r[LINEAR_dense_stored] == BYTES;
    const float *x = p->memory + r[LINEAR_source], units = (float)(1 << r[LINEAR_bits]);
    int8_t *to_bytes = (int8_t *)to;
    if (!graded && bytes) for (int32_t k = from; k < end; k++) to_bytes[list[k] - minus] = 1;
    else if (!graded) for (int32_t k = from; k < end; k++) to[list[k] - minus] = 1;
    else if (bytes) for (int32_t k = from; k < end; k++) to_bytes[list[k] - minus] = (int8_t)(int32_t)(x[list[k]] * units);
    else for (int32_t k = from; k < end; k++) to[list[k] - minus] = (int16_t)(x[list[k]] * units);
}

INLINE float unit_of_dense(const program *p, const int32_t *r)
{
    const int graded = r[LINEAR_graded] && !p->events[r[LINEAR_plain]];
    return unit_of(r[LINEAR_unit] + (graded ? r[LINEAR_bits] : 0));
}
#endif
