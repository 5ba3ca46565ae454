/* Products of inputs that are mostly zero: by events, or dense where they are not. Sums begin at zero, their terms come
   in ascending order of inputs, and every product is rounded before it is added: the same bits both ways. */

/* out[vectors · LANES] = Σ_e x_e · rows[list_e]; of spikes x is NULL. */
INLINE void add_rows(const int vectors, const float *rows, int64_t pitch, const int32_t *list, int32_t count,
                     const float *x, float *out)
{
    vec sums[MOST_VECTORS];
    UNROLL(16)
    for (int v = 0; v < vectors; v++) sums[v] = splat(0.0f);
    for (int32_t e = 0; e < count; e++) {
        const float *row = rows + list[e] * pitch;
        if (x) {
            UNROLL(16)
            for (int v = 0; v < vectors; v++) sums[v] = sums[v] + splat(x[list[e]]) * load(row + v * LANES);
        } else {
            UNROLL(16)
            for (int v = 0; v < vectors; v++) sums[v] = sums[v] + load(row + v * LANES);
        }
    }
    UNROLL(16)
    for (int v = 0; v < vectors; v++) store(out + v * LANES, sums[v]);
}

/* ---------------------------------------------------------------- dense */
#if LANES == 16 && MOST_VECTORS == 16
enum { TILE_ROWS = 8, TILE_VECTORS = 2 };
#else
enum { TILE_ROWS = 2, TILE_VECTORS = 2 };
#endif
enum { PANEL = TILE_VECTORS * LANES }; /* columns that lie together for each input */

/* out [rows][outputs] = x [rows][inputs] · weights (+ bias), weights in panels. */
typedef struct {
    const float *x, *panels, *bias;
    float *out;
    int64_t inputs, outputs, x_step, out_step;
    int64_t exact; /* whether products are rounded before they are added: of inputs other than 0 and 1 it shows */
} dense;

INLINE void dense_tile(const int rows, const int exact, const dense *p, int64_t row, int64_t column)
{
    const float *x = p->x + row * p->x_step, *panel = p->panels + column * p->inputs;
    vec sums[TILE_ROWS][TILE_VECTORS];
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        for (int v = 0; v < TILE_VECTORS; v++) sums[n][v] = splat(0.0f);
    for (int64_t k = 0; k < p->inputs; k++, panel += PANEL) {
        vec w[TILE_VECTORS];
        for (int v = 0; v < TILE_VECTORS; v++) w[v] = load(panel + v * LANES);
        UNROLL(8)
        for (int n = 0; n < rows; n++) {
            const vec value = splat(x[n * p->x_step + k]);
            for (int v = 0; v < TILE_VECTORS; v++)
                sums[n][v] = exact ? sums[n][v] + value * w[v] : multiply_add(value, w[v], sums[n][v]);
        }
    }
    for (int n = 0; n < rows; n++)
        for (int v = 0; v < TILE_VECTORS; v++) {
            const int64_t at = column + v * LANES, left = p->outputs - at;
            const int lanes = left >= LANES ? LANES : left > 0 ? (int)left : 0;
            if (p->bias) sums[n][v] = sums[n][v] + load_some(p->bias + at, lanes);
            store_some(p->out + (row + n) * p->out_step + at, sums[n][v], lanes);
        }
}

INLINE void dense_kind(const int exact, const dense *p, int64_t begin, int64_t end)
{
    for (int64_t low = begin; low < end; low += 4 * TILE_ROWS) {
        const int64_t high = low + 4 * TILE_ROWS < end ? low + 4 * TILE_ROWS : end;
        for (int64_t column = 0; column < p->outputs; column += PANEL) {
            int64_t row = low;
            for (; row + TILE_ROWS <= high; row += TILE_ROWS) dense_tile(TILE_ROWS, exact, p, row, column);
            for (; row < high; row++) dense_tile(1, exact, p, row, column);
        }
    }
}

static void dense_rows(const dense *p, int64_t begin, int64_t end)
{
    if (p->exact) dense_kind(1, p, begin, end);
    else dense_kind(0, p, begin, end);
}

EXPORT void CORE(dense)(const dense *p, int64_t begin, int64_t end)
{
    dense_rows(p, begin, end);
}

/* weights [inputs][outputs], with these distances between them, in panels; the last one is filled up with zeros. */
EXPORT void CORE(panels)(const float *weights, int64_t inputs, int64_t outputs, int64_t input_step, int64_t output_step,
                         float *panels)
{
    for (int64_t column = 0; column < outputs; column += PANEL)
        for (int64_t k = 0; k < inputs; k++)
            for (int64_t n = column; n < column + PANEL; n++)
                *panels++ = n < outputs ? weights[k * input_step + n * output_step] : 0.0f;
}

/* ---------------------------------------------------------------- by events */
typedef struct {
    const uint16_t *bits;   /* [rows][words] */
    const float *x;         /* [rows][inputs] where inputs are not all 0 or 1 */
    const float *weights;   /* [inputs][padded outputs] */
    const float *bias;      /* [outputs] */
    float *out;             /* [rows][outputs] */
    float *activity;        /* Σ x² of each row */
    int64_t inputs, outputs;
} linear;

INLINE int32_t list_row(const linear *p, int64_t row, int32_t *list)
{
    int32_t count = 0;
    if (!p->x) return list_bits(p->bits + row * (PADDED(p->inputs) / WORD), PADDED(p->inputs) / WORD, list);
    for (int64_t i = 0; i < p->inputs; i += LANES) {
        const int64_t left = p->inputs - i;
        const vec some = load_some(p->x + row * p->inputs + i, left < LANES ? (int)left : LANES);
        count = append(list, count, not_zero(some), (int32_t)i);
    }
    return count;
}

EXPORT void CORE(linear_forward)(const linear *p, int64_t begin, int64_t end)
{
    const int64_t padded = PADDED(p->outputs);
    int32_t *list = malloc((size_t)(p->inputs + 2 * WORD) * sizeof *list);
    float *sums = malloc((size_t)padded * sizeof *sums);
    for (int64_t row = begin; row < end; row++) {
        const int32_t count = list_row(p, row, list);
        const float *x = p->x ? p->x + row * p->inputs : NULL;
        for (int64_t done = 0; done < padded;) {
            const int64_t left = (padded - done) / LANES;
            if (left >= MOST_VECTORS) {
                if (x) add_rows(MOST_VECTORS, p->weights + done, padded, list, count, x, sums + done);
                else add_rows(MOST_VECTORS, p->weights + done, padded, list, count, NULL, sums + done);
                done += MOST_VECTORS * LANES;
            } else {
                if (x) add_rows(1, p->weights + done, padded, list, count, x, sums + done);
                else add_rows(1, p->weights + done, padded, list, count, NULL, sums + done);
                done += LANES;
            }
        }
        for (int64_t i = 0; i < p->outputs; i += LANES) {
            const int lanes = p->outputs - i < LANES ? (int)(p->outputs - i) : LANES;
            vec sum = load(sums + i);
            if (p->bias) sum = sum + load_some(p->bias + i, lanes);
            store_some(p->out + row * p->outputs + i, sum, lanes);
        }
        if (p->activity) {
            float total = x ? 0.0f : (float)count;
            for (int32_t e = 0; x && e < count; e++) total += x[list[e]] * x[list[e]];
            p->activity[row] = total;
        }
    }
    free(list);
    free(sums);
}

/* weights[j] += Σ_row x[row][j] · grads[row], for the inputs of words begin … end − 1. Rows are taken in blocks: their
   gradients stay in the cache while each input adds up those of the rows where it was active. */
enum { BLOCK = 128 };
typedef struct {
    const uint16_t *bits;
    const float *x;
    const float *grads; /* [rows][outputs] */
    float *weights;     /* [inputs][padded outputs] */
    int64_t rows, inputs, outputs;
} linear_grads;

INLINE void add_active(const int graded, const int vectors, const linear_grads *p, const uint8_t *active, int32_t count, int64_t first,
                       int64_t input, int64_t done)
{
    float *to = p->weights + input * PADDED(p->outputs) + done;
    const int64_t outputs = p->outputs;
    const float *grads = p->grads + first * outputs + done;
    const int lanes = p->outputs - done < LANES ? (int)(p->outputs - done) : LANES;
    vec sums[MOST_VECTORS];
    UNROLL(16)
    for (int v = 0; v < vectors; v++) sums[v] = load(to + v * LANES);
    for (int32_t e = 0; e < count; e++) {
        const float *row = grads + active[e] * outputs;
        const vec x = graded ? splat(p->x[(first + active[e]) * p->inputs + input]) : splat(1.0f);
        UNROLL(16)
        for (int v = 0; v < vectors; v++) {
            const vec grad = vectors == 1 ? load_some(row, lanes) : load(row + v * LANES);
            sums[v] = graded ? sums[v] + x * grad : sums[v] + grad;
        }
    }
    UNROLL(16)
    for (int v = 0; v < vectors; v++) store(to + v * LANES, sums[v]);
}

EXPORT void CORE(linear_backward)(const linear_grads *p, int64_t begin, int64_t end)
{
    const int64_t words = PADDED(p->inputs) / WORD, first_input = begin * WORD;
    const int64_t inputs = (end * WORD < p->inputs ? end * WORD : p->inputs) - first_input;
    uint8_t *active = malloc((size_t)((end - begin) * WORD * BLOCK));
    int32_t *counts = malloc((size_t)((end - begin) * WORD) * sizeof *counts);
    int32_t *list = malloc((size_t)((end - begin) * WORD + LANES) * sizeof *list);
    for (int64_t first = 0; first < p->rows; first += BLOCK) {
        const int64_t rows = p->rows - first < BLOCK ? p->rows - first : BLOCK;
        memset(counts, 0, (size_t)inputs * sizeof *counts);
        for (int64_t row = 0; row < rows; row++) {
            const int32_t count = list_bits(p->bits + (first + row) * words + begin, end - begin, list);
            for (int32_t e = 0; e < count; e++) active[list[e] * BLOCK + counts[list[e]]++] = (uint8_t)row;
        }
        for (int64_t j = 0; j < inputs; j++) {
            if (counts[j] == 0) continue;
            for (int64_t done = 0; done < p->outputs;) {
                const int64_t left = p->outputs - done;
                const int vectors = left >= MOST_VECTORS * LANES ? MOST_VECTORS : 1;
#define ADD_ACTIVE(graded, vectors) \
    add_active(graded, vectors, p, active + j * BLOCK, counts[j], first, first_input + j, done)
                if (vectors > 1 && p->x) ADD_ACTIVE(1, MOST_VECTORS);
                else if (vectors > 1) ADD_ACTIVE(0, MOST_VECTORS);
                else if (p->x) ADD_ACTIVE(1, 1);
                else ADD_ACTIVE(0, 1);
#undef ADD_ACTIVE
                done += vectors * LANES;
            }
        }
    }
    free(active);
    free(counts);
    free(list);
}

/* to [row][channels] += 2 · bit · by[row]: what comes through the activity of rows begin … end − 1. */
EXPORT void CORE(add_activity)(const uint16_t *bits, const float *by, float *to, int64_t channels, int64_t begin,
                               int64_t end)
{
    const int64_t padded = PADDED(channels);
    for (int64_t row = begin; row < end; row++) {
        const vec more = splat(2.0f * by[row]);
        for (int64_t i = 0; i < channels; i += LANES) {
            const mask active = bits_at(bits + row * (padded / WORD), i);
            const int lanes = channels - i < LANES ? (int)(channels - i) : LANES;
            float *at = to + row * channels + i;
            if (active) store_some(at, load_some(at, lanes) + pick(active, more, splat(0.0f)), lanes);
        }
    }
}

/* Bits of numbers [rows][channels]; `other` says of each row whether it has numbers other than 0 and 1. */
EXPORT void CORE(pack)(const float *x, uint16_t *bits, uint8_t *other, int64_t channels, int64_t begin, int64_t end)
{
    const int64_t padded = PADDED(channels);
    for (int64_t row = begin; row < end; row++) {
        ivec odd = isplat(0);
        for (int64_t i = 0; i < padded; i += LANES) {
            const int64_t left = channels - i;
            const vec some = load_some(x + row * channels + i, left >= LANES ? LANES : left > 0 ? (int)left : 0);
            odd |= not_plain(some);
            set_bits(bits + row * (padded / WORD), i, not_zero(some));
        }
        other[row] = any(odd) != 0;
    }
}

/* How many bits are set. */
EXPORT void CORE(count)(const uint16_t *bits, int64_t words, int64_t *found)
{
    *found = 0;
    for (int64_t w = 0; w < words; w++) *found += count_bits(bits + w, 1);
}

/* The opposite: 0 and 1 for the bits of rows begin … end − 1. */
EXPORT void CORE(unpack)(const uint16_t *bits, float *x, int64_t channels, int64_t begin, int64_t end)
{
    const int64_t padded = PADDED(channels);
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < channels; i += LANES)
            store_some(x + row * channels + i, numbers_of(bits_at(bits + row * (padded / WORD), i)),
                       channels - i < LANES ? (int)(channels - i) : LANES);
}

/* counts [samples][channels] += weights[t] · bit, summed over steps in their order; samples begin … end − 1. */
EXPORT void CORE(weighted_counts)(const uint16_t *bits, const float *weights, float *counts, int64_t steps,
                                  int64_t batch, int64_t channels, int64_t begin, int64_t end)
{
    const int64_t words = PADDED(channels) / WORD;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = 0; i < channels; i += LANES) {
            vec sum = splat(0.0f);
            for (int64_t t = 0; t < steps; t++)
                sum = sum + pick(bits_at(bits + (t * batch + b) * words, i), splat(weights[t]), splat(0.0f));
            store_some(counts + b * channels + i, sum, channels - i < LANES ? (int)(channels - i) : LANES);
        }
}

/* h[t] = β·h[t−1] + I[t] and s[t] = s[t−1] + h[t] of numbers begin … end − 1, step by step: the last h and s. */
EXPORT void CORE(leaky_sum)(const float *current, float *membrane, float *total, int64_t steps, int64_t count,
                            float decay, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES) {
        const int lanes = end - i < LANES ? (int)(end - i) : LANES;
        vec h = load_some(membrane + i, lanes), s = load_some(total + i, lanes);
        for (int64_t t = 0; t < steps; t++) {
            h = splat(decay) * h + load_some(current + t * count + i, lanes);
            s = s + h;
        }
        store_some(membrane + i, h, lanes);
        store_some(total + i, s, lanes);
    }
}
