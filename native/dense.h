/* Dense products, for layers with many active inputs. A tile is some rows of inputs (pixels of an image row, or time
   steps) times some vectors of outputs. Its sums stay in registers, and every loaded weight serves all rows of the
   tile.

   Spikes and counts are small integers, so integer weights use integer dot products: pairs of 16 bits (SHORTS) or
   quads of 8 bits (BYTES). The weights lie in blocks of 64, 32 or 16 outputs, each [taps][inputs / group][outputs]
   [group], so that a tile reads them in order. The rows for event lists are stored separately. */

#if HAS_PAIRS
enum { LEAST_ROWS = 4 }; /* for several time steps together */

#if HAS_AVX512
enum { ROWS_OF_4 = 6, ROWS_OF_2 = 8, ROWS_OF_1 = 8 };
#else
enum { ROWS_OF_4 = 1, ROWS_OF_2 = 2, ROWS_OF_1 = 4 };
#endif

/* The inputs and weights of a tile: `taps` pieces of `inputs` each. */
typedef struct {
    const int16_t *x;           /* first tap of the first row; bytes for quads */
    const int32_t *offsets;     /* of each tap, in elements */
    const int8_t *weights;
    int64_t row_step, out_step; /* distance from one row to the next */
    int32_t taps, inputs;
    float unit;
    float *out;
} tile;

/* Add unit · W·x to `out` for `rows` rows and `vectors` · 16 outputs from `done` on; the weights begin at `w`. */
INLINE void add_tile(const int stored, const int vectors, const int rows, const tile *t, int64_t row, int32_t done,
                     const int8_t *w)
{
    const int group = stored == BYTES ? 4 : 2, width = stored == BYTES ? 1 : 2;
    const int64_t row_step = t->row_step * width;
    const int8_t *x = (const int8_t *)t->x + row * row_step;
    sums16 sums[8][4];
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        UNROLL(4)
        for (int v = 0; v < vectors; v++) sums[n][v] = no_sums();
    for (int32_t tap = 0; tap < t->taps; tap++) {
        const int8_t *at = x + (int64_t)t->offsets[tap] * width;
        for (int32_t i = 0; i < t->inputs; i += group, w += 64 * vectors, at += group * width) {
            weights16 some[4];
            UNROLL(4)
            for (int v = 0; v < vectors; v++) some[v] = load_weights(w + 64 * v);
            UNROLL(8)
            for (int n = 0; n < rows; n++) {
                int32_t inputs;
                memcpy(&inputs, at + n * row_step, sizeof inputs);
                UNROLL(4)
                for (int v = 0; v < vectors; v++) {
#if HAS_QUADS
                    if (stored == BYTES) add_quads(&sums[n][v], some[v], inputs);
                    else
#endif
                        add_pairs(&sums[n][v], some[v], inputs);
                }
            }
        }
    }
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        UNROLL(4)
        for (int v = 0; v < vectors; v++) {
            float *out = t->out + (row + n) * t->out_step + done + LANES * v;
            store(out, load(out) + floats(sums_of(sums[n][v])) * splat(t->unit));
        }
}

/* Computes all rows of one block of outputs. */
INLINE void add_block(const int stored, const int vectors, const int most, const tile *t, int32_t rows, int32_t done,
                      const int8_t *w)
{
    int32_t row = 0;
    for (; row + most <= rows; row += most) add_tile(stored, vectors, most, t, row, done, w);
    if (most > 4 && rows - row >= 4) {
        add_tile(stored, vectors, 4, t, row, done, w);
        row += 4;
    }
    if (most > 2 && rows - row >= 2) {
        add_tile(stored, vectors, 2, t, row, done, w);
        row += 2;
    }
    for (; row < rows; row++) add_tile(stored, vectors, 1, t, row, done, w);
}

INLINE void add_tiles_stored(const int stored, const tile *t, int32_t rows, int32_t outputs)
{
    const int64_t inputs = (int64_t)t->taps * t->inputs * (stored == BYTES ? 1 : 2); /* bytes of one output */
    const int8_t *w = t->weights;
    for (int32_t done = 0, width; done < outputs; done += width, w += inputs * width) {
        width = outputs - done >= 64 ? 64 : outputs - done >= 32 ? 32 : 16;
        if (width == 64) add_block(stored, 4, ROWS_OF_4, t, rows, done, w);
        else if (width == 32) add_block(stored, 2, ROWS_OF_2, t, rows, done, w);
        else add_block(stored, 1, ROWS_OF_1, t, rows, done, w);
    }
}

static void add_tiles(int stored, const tile *t, int32_t rows, int32_t outputs)
{
#if HAS_QUADS
    if (stored == BYTES) {
        add_tiles_stored(BYTES, t, rows, outputs);
        return;
    }
#else
    (void)stored;
#endif
    add_tiles_stored(SHORTS, t, rows, outputs);
}

/* Whether a synapse has weights for dense products, and enough active inputs for them to be faster. The threshold is
   lower if a weight serves several rows than if each weight is loaded for a single row (`single`). */
INLINE int is_dense(const program *p, const int32_t *r, int32_t inputs, int single)
{
    const int bytes = r[LINEAR_dense_stored] == BYTES;
    if (r[LINEAR_dense] < 0 || (bytes && (!HAS_QUADS || is_graded(p, r)))) return 0; /* quads have unsigned inputs */
    return (int64_t)p->events[r[LINEAR_counted]] * 100 > p->dense_from[2 * bytes + single] * inputs;
}

/* Writes events from … end − 1 of a list as small integers in units of 2^−bits; the event at place e goes to `to` +
   e. */
typedef struct {
    const int32_t *list;
    const float *x; /* values of graded inputs, or NULL */
    float units;
    int bytes;
} packing;

INLINE packing packing_of(const program *p, const int32_t *r)
{
    return (packing){.list = p->events + r[LINEAR_listed], .x = is_graded(p, r) ? p->memory + r[LINEAR_source] : NULL,
                     .units = (float)(1 << r[LINEAR_bits]), .bytes = r[LINEAR_dense_stored] == BYTES};
}

INLINE void pack_listed(const packing *k, int32_t from, int32_t end, int8_t *to)
{
    const int32_t *list = k->list;
    int16_t *shorts = (int16_t *)(void *)to;
    if (k->bytes) for (int32_t n = from; n < end; n++) to[list[n]] = 1;
    else if (!k->x) for (int32_t n = from; n < end; n++) shorts[list[n]] = 1;
    else for (int32_t n = from; n < end; n++) shorts[list[n]] = (int16_t)(k->x[list[n]] * k->units);
}

/* Writes all inputs of a layer: sixteen at a time from memory if their numbers are there, otherwise from their list. */
INLINE void pack_inputs(const program *p, const int32_t *r, int8_t *to)
{
    const packing k = packing_of(p, r);
    const float *x = p->memory + r[LINEAR_source];
    if (k.x || p->events[r[LINEAR_plain]] == PLAIN_IN_MEMORY) {
        const vec units = splat(k.x ? k.units : 1.0f);
        for (int32_t i = 0; i < r[LINEAR_inputs]; i += LANES)
            if (k.bytes) store_bytes(to + i, load(x + i));
            else store_shorts((int16_t *)(void *)to + i, load(x + i) * units);
        return;
    }
    memset(to, 0, (size_t)r[LINEAR_inputs] * (k.bytes ? 1 : 2));
    pack_listed(&k, 0, p->events[r[LINEAR_counted]], to);
}

INLINE float unit_of_dense(const program *p, const int32_t *r)
{
    return unit_of(r[LINEAR_unit] + (is_graded(p, r) ? r[LINEAR_bits] : 0));
}
#endif
