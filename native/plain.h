/* Instructions other than synapses and neurons. */

enum { ADD, SUB, MUL };
enum { PAIRS, MEANS, LARGEST };

/* The position of element `begin` in an operand that repeats after `period` elements, and that of the next LANES. */
INLINE int32_t phase(int32_t begin, int32_t period)
{
    return period > begin ? begin : begin % period;
}

INLINE int32_t next(int32_t k, int32_t period)
{
    return k + LANES < period ? k + LANES : 0;
}

/* Computes a + b, a − b or a · b for elements begin … end − 1 to `out`; the operand at `fresh_at` is read from
   `fresh`. */
static void operate(const program *p, const int32_t *r, int32_t begin, int32_t end, scalar *out, const scalar *fresh,
                    int32_t fresh_at)
{
    const scalar *a = (r[ARITHMETIC_a_constant] ? p->constants : p->memory) + r[ARITHMETIC_a];
    const scalar *b = (r[ARITHMETIC_b_constant] ? p->constants : p->memory) + r[ARITHMETIC_b];
    const int32_t a_period = r[ARITHMETIC_a_period], b_period = r[ARITHMETIC_b_period], kind = r[ARITHMETIC_kind];
    int32_t ka = phase(begin, a_period), kb = phase(begin, b_period);
    if (!r[ARITHMETIC_a_constant] && r[ARITHMETIC_a] == fresh_at) a = fresh - ka;
    if (!r[ARITHMETIC_b_constant] && r[ARITHMETIC_b] == fresh_at) b = fresh - kb;
    for (int32_t i = 0; i < end - begin; i += LANES) {
        const vec left = load(a + ka), right = load(b + kb);
        store(out + i, kind == ADD ? left + right : kind == SUB ? left - right : left * right);
        ka = next(ka, a_period);
        kb = next(kb, b_period);
    }
}

/* Loads one step's input or noise: unchanged, or from [C, H, W] to channels last. */
static void load_outside(const program *p, const int32_t *r, const scalar *outside)
{
    const scalar *from = outside + r[LOAD_at];
    scalar *out = p->memory + r[LOAD_out];
    const int32_t pixels = r[LOAD_pixels], pitch = r[LOAD_pitch];
    if (pitch == 1 && r[LOAD_channels] == 1) {
        memcpy(out, from, (size_t)pixels * sizeof *out);
        return;
    }
    for (int32_t c = 0; c < r[LOAD_channels]; c++)
        for (int32_t i = 0; i < pixels; i++) out[i * pitch + c] = *from++;
}

/* Gathers by a table of addresses, each moved by the same shift; −1 means zero. */
static void move(const program *p, const int32_t *r)
{
    const int32_t *table = p->tables + r[MOVE_table];
    scalar *out = p->memory + r[MOVE_out];
    const scalar *from = p->memory + r[MOVE_shift];
    for (int32_t i = 0; i < r[MOVE_size]; i++) out[i] = table[i] >= 0 ? from[table[i]] : 0;
}

/* Computes a_i = Σ_k x_k² − x_i², exact because x are spikes or counts. Elements after the neurons are zero. */
static void recurrent_activity(const program *p, const int32_t *r)
{
    const scalar *x = p->memory + r[ACTIVITY_source];
    scalar *out = p->memory + r[ACTIVITY_out], total = 0;
    for (int32_t i = 0; i < r[ACTIVITY_neurons]; i++) total += x[i] * x[i];
    for (int32_t i = 0; i < r[ACTIVITY_size]; i++) out[i] = i < r[ACTIVITY_neurons] ? total - x[i] * x[i] : 0;
}

/* Pools windows of rows × columns that do not overlap: ((a + b) + (c + d)) · ¼ in that order, exact means, or the
   largest value. */
static void pool(const program *p, const int32_t *r)
{
    const int32_t width = r[POOL_width], pitch = r[POOL_pitch], kind = r[POOL_kind];
    const int32_t rows = r[POOL_rows], columns = r[POOL_columns], down = width * columns * pitch;
    const scalar share = MEAN_OF(rows * columns);
    scalar *out = p->memory + r[POOL_out];
    for (int32_t y = 0; y < r[POOL_height]; y++)
        for (int32_t x = 0; x < width; x++, out += pitch)
            for (int32_t lane = 0; lane < pitch; lane += LANES) {
                const scalar *first = p->memory + r[POOL_source] + (y * rows * width + x) * columns * pitch + lane;
                vec found = kind == LARGEST ? load(first) : splat(0);
                for (int32_t ky = 0; ky < rows; ky++) {
                    vec row = kind == LARGEST ? found : load(first + ky * down);
                    for (int32_t kx = kind != LARGEST; kx < columns; kx++) {
                        const vec value = load(first + ky * down + kx * pitch);
                        row = kind == LARGEST ? larger(row, value) : row + value;
                    }
                    found = kind == LARGEST ? row : ky ? found + row : row;
                }
                store(out + lane, kind == LARGEST ? found : found * splat(share));
            }
}

static void copy(scalar *to, const scalar *from, int64_t size)
{
    memmove(to, from, (size_t)size * sizeof *to);
}
