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

/* ---------------------------------------------------------------- by events
   What many events read lies together in the nearest cache: a block of inputs and two panels of their weights, or
   the gradients of a block of rows. */
enum { INPUTS = 4 * WORD, ROWS = 64, LISTED = INPUTS + WORD };

typedef struct {
    const uint16_t *bits;   /* [rows][words] */
    const float *x;         /* [rows][inputs] where inputs are not all 0 or 1 */
    const float *panels;    /* weights */
    const float *bias;      /* [outputs] */
    float *out;             /* [rows][outputs] */
    float *activity;        /* Σ x² of each row */
    int64_t inputs, outputs;
} linear;

/* out += Σ_e x_e · panel[list_e], for one panel or two. */
INLINE void add_listed(const int panels, const float *panel, int64_t next, const int32_t *list, int32_t count,
                       const float *x, float *out)
{
    vec sums[2][TILE_VECTORS];
    UNROLL(2)
    for (int n = 0; n < panels; n++)
        for (int v = 0; v < TILE_VECTORS; v++) sums[n][v] = load(out + n * PANEL + v * LANES);
    for (int32_t e = 0; e < count; e++) {
        const float *row = panel + list[e] * PANEL;
        UNROLL(2)
        for (int n = 0; n < panels; n++)
            for (int v = 0; v < TILE_VECTORS; v++) {
                const vec w = load(row + n * next + v * LANES);
                sums[n][v] = sums[n][v] + (x ? splat(x[list[e]]) * w : w);
            }
    }
    UNROLL(2)
    for (int n = 0; n < panels; n++)
        for (int v = 0; v < TILE_VECTORS; v++) store(out + n * PANEL + v * LANES, sums[n][v]);
}

INLINE void add_block(const int graded, const linear *p, int64_t row, int64_t rows, int64_t input, const int32_t *lists,
                      const int32_t *counts, float *sums, int64_t pitch)
{
    const int64_t next = p->inputs * PANEL;
    for (int64_t column = 0; column < pitch; column += 2 * PANEL)
        for (int64_t r = 0; r < rows; r++) {
            const float *x = graded ? p->x + (row + r) * p->inputs + input : NULL;
            const float *panel = p->panels + column * p->inputs + input * PANEL;
            float *out = sums + r * pitch + column;
            if (column + PANEL < pitch) add_listed(2, panel, next, lists + r * LISTED, counts[r], x, out);
            else add_listed(1, panel, next, lists + r * LISTED, counts[r], x, out);
        }
}

EXPORT void CORE(linear_forward)(const linear *p, int64_t begin, int64_t end)
{
    const int64_t words = PADDED(p->inputs) / WORD, pitch = (p->outputs + PANEL - 1) / PANEL * PANEL;
    int32_t *lists = room_of(ROWS * LISTED * sizeof *lists), counts[ROWS];
    float *sums = room_of((size_t)(ROWS * pitch) * sizeof *sums), squares[ROWS];
    for (int64_t row = begin; row < end; row += ROWS) {
        const int64_t rows = end - row < ROWS ? end - row : ROWS;
        memset(sums, 0, (size_t)(rows * pitch) * sizeof *sums);
        memset(squares, 0, sizeof squares);
        for (int64_t word = 0; word < words; word += INPUTS / WORD) {
            const int64_t some = words - word < INPUTS / WORD ? words - word : INPUTS / WORD, input = word * WORD;
            for (int64_t r = 0; r < rows; r++) {
                int32_t *list = lists + r * LISTED;
                counts[r] = list_bits(p->bits + (row + r) * words + word, some, list);
                const float *x = p->x ? p->x + (row + r) * p->inputs + input : NULL;
                if (!x) squares[r] += (float)counts[r];
                for (int32_t e = 0; x && e < counts[r]; e++) squares[r] += x[list[e]] * x[list[e]];
            }
            if (p->x) add_block(1, p, row, rows, input, lists, counts, sums, pitch);
            else add_block(0, p, row, rows, input, lists, counts, sums, pitch);
        }
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t i = 0; i < p->outputs; i += LANES) {
                const int lanes = p->outputs - i < LANES ? (int)(p->outputs - i) : LANES;
                vec sum = load(sums + r * pitch + i);
                if (p->bias) sum = sum + load_some(p->bias + i, lanes);
                store_some(p->out + (row + r) * p->outputs + i, sum, lanes);
            }
            if (p->activity) p->activity[row + r] = squares[r];
        }
    }
    close_room(lists);
    close_room(sums);
}

/* weights[j] += Σ_row x[row][j] · grads[row], for the inputs of words begin … end − 1. */
typedef struct {
    const uint16_t *bits;
    const float *x;
    const float *grads; /* [rows][outputs] */
    float *weights;     /* [inputs][padded outputs] */
    int64_t rows, inputs, outputs;
} linear_grads;

enum { STRIP = 4 }; /* vectors of gradients that lie together */

/* to += Σ_e x_e · grads[active_e] */
INLINE void add_active(const int vectors, const float *grads, const uint8_t *active, int32_t count, const float *x,
                       int64_t x_step, float *to)
{
    vec sums[STRIP];
    UNROLL(4)
    for (int v = 0; v < vectors; v++) sums[v] = load(to + v * LANES);
    for (int32_t e = 0; e < count; e++) {
        const float *row = grads + active[e] * vectors * LANES;
        UNROLL(4)
        for (int v = 0; v < vectors; v++)
            sums[v] = sums[v] + (x ? splat(x[active[e] * x_step]) * load(row + v * LANES) : load(row + v * LANES));
    }
    UNROLL(4)
    for (int v = 0; v < vectors; v++) store(to + v * LANES, sums[v]);
}

/* The gradients of a block of rows, strip by strip of columns: [strips][ROWS][vectors · LANES]. */
static void gather_strips(const linear_grads *p, int64_t first, int64_t rows, float *room)
{
    const int64_t padded = PADDED(p->outputs), striped = padded / (STRIP * LANES) * (STRIP * LANES);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t at = 0; at < padded; at += LANES) {
            const int64_t left = p->outputs - at, width = at < striped ? STRIP * LANES : LANES;
            store(room + at / width * width * ROWS + row * width + at % width,
                  load_some(p->grads + (first + row) * p->outputs + at, left >= LANES ? LANES : left > 0 ? (int)left : 0));
        }
}

INLINE void add_strip(const int vectors, const linear_grads *p, int64_t first, int64_t input, int64_t inputs,
                      const uint8_t *active, const int32_t *counts, int64_t column, const float *room)
{
    for (int64_t j = 0; j < inputs; j++) {
        float *to = p->weights + (input + j) * PADDED(p->outputs) + column;
        const float *x = p->x ? p->x + first * p->inputs + input + j : NULL, *grads = room + column * ROWS;
        if (!counts[j]) continue;
        if (x) add_active(vectors, grads, active + j * ROWS, counts[j], x, p->inputs, to);
        else add_active(vectors, grads, active + j * ROWS, counts[j], NULL, 0, to);
    }
}

EXPORT void CORE(linear_backward)(const linear_grads *p, int64_t begin, int64_t end)
{
    const int64_t words = PADDED(p->inputs) / WORD, input = begin * WORD, padded = PADDED(p->outputs);
    const int64_t inputs = (end * WORD < p->inputs ? end * WORD : p->inputs) - input;
    uint8_t *active = room_of((size_t)((end - begin) * WORD * ROWS));
    int32_t *counts = room_of((size_t)((end - begin) * WORD) * sizeof *counts);
    int32_t *list = room_of((size_t)((end - begin) * WORD + LANES) * sizeof *list);
    float *room = room_of((size_t)(ROWS * padded) * sizeof *room);
    for (int64_t first = 0; first < p->rows; first += ROWS) {
        const int64_t rows = p->rows - first < ROWS ? p->rows - first : ROWS;
        memset(counts, 0, (size_t)inputs * sizeof *counts);
        for (int64_t row = 0; row < rows; row++) {
            const int32_t count = list_bits(p->bits + (first + row) * words + begin, end - begin, list);
            for (int32_t e = 0; e < count; e++) active[list[e] * ROWS + counts[list[e]]++] = (uint8_t)row;
        }
        gather_strips(p, first, rows, room);
        for (int64_t column = 0; column < padded;) {
            const int whole = padded - column >= STRIP * LANES;
            if (whole) add_strip(STRIP, p, first, input, inputs, active, counts, column, room);
            else add_strip(1, p, first, input, inputs, active, counts, column, room);
            column += whole ? STRIP * LANES : LANES;
        }
    }
    close_room(active);
    close_room(counts);
    close_room(list);
    close_room(room);
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
