/* Instructions other than synapses and neurons. */

enum { ADD, SUB, MUL };

/* a + b, a − b or a · b for elements begin … end − 1, to ``out``; the operand at ``fresh_at`` is at ``fresh``. */
static void operate(const int64_t *r, int64_t begin, int64_t end, float *out, const float *fresh, int64_t fresh_at,
                    const float *memory, const float *constants)
{
    const float *a = (r[ARITHMETIC_a_constant] ? constants : memory) + r[ARITHMETIC_a];
    const float *b = (r[ARITHMETIC_b_constant] ? constants : memory) + r[ARITHMETIC_b];
    const int64_t a_period = r[ARITHMETIC_a_period], b_period = r[ARITHMETIC_b_period], kind = r[ARITHMETIC_kind];
    int64_t ka = phase(begin, a_period), kb = phase(begin, b_period);
    if (!r[ARITHMETIC_a_constant] && r[ARITHMETIC_a] == fresh_at) a = fresh - ka;
    if (!r[ARITHMETIC_b_constant] && r[ARITHMETIC_b] == fresh_at) b = fresh - kb;
    for (int64_t i = 0; i < end - begin; i += LANES) {
        const v16 left = load(a + ka), right = load(b + kb);
        store(out + i, kind == ADD ? left + right : kind == SUB ? left - right : left * right);
        ka = next(ka, a_period);
        kb = next(kb, b_period);
    }
}

static void arithmetic(const int64_t *r, float *memory, const float *constants)
{
    operate(r, 0, r[ARITHMETIC_size], memory + r[ARITHMETIC_out], memory, -1, memory, constants);
}

/* One step's input or noise: as it is, or from [C, H, W] to channels last. */
static void load_outside(const int64_t *r, float *memory, const float *outside)
{
    const float *from = outside + r[LOAD_at];
    float *out = memory + r[LOAD_out];
    const int64_t pixels = r[LOAD_pixels], pitch = r[LOAD_pitch];
    if (pitch == 1) {
        memcpy(out, from, (size_t)pixels * sizeof(float));
        return;
    }
    for (int64_t c = 0; c < r[LOAD_channels]; c++)
        for (int64_t p = 0; p < pixels; p++) out[p * pitch + c] = from[c * pixels + p];
}

/* Gather by a table of addresses, each so much further on; −1 is zero. */
static void move(const int64_t *r, float *memory, const int32_t *tables)
{
    const int32_t *table = tables + r[MOVE_table];
    float *out = memory + r[MOVE_out];
    const float *from = memory + r[MOVE_shift];
    for (int64_t i = 0; i < r[MOVE_size]; i++) out[i] = table[i] >= 0 ? from[table[i]] : 0.0f;
}

/* a_i = Σ_k x_k² − x_i²; exact, for x are spikes or counts. Zero beyond the neurons. */
static void recurrent_activity(const int64_t *r, float *memory)
{
    const float *x = memory + r[ACTIVITY_source];
    float *out = memory + r[ACTIVITY_out], total = 0.0f;
    for (int64_t i = 0; i < r[ACTIVITY_neurons]; i++) total += x[i] * x[i];
    for (int64_t i = 0; i < r[ACTIVITY_size]; i++) out[i] = i < r[ACTIVITY_neurons] ? total - x[i] * x[i] : 0.0f;
}

/* ((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order */
static void pool_pairs(const int64_t *r, float *memory)
{
    const int64_t width = r[POOL_PAIRS_width], pitch = r[POOL_PAIRS_pitch];
    float *out = memory + r[POOL_PAIRS_out];
    for (int64_t y = 0; y < r[POOL_PAIRS_height]; y++)
        for (int64_t x = 0; x < width; x++, out += pitch) {
            const float *top = memory + r[POOL_PAIRS_source] + (2 * y * 2 * width + 2 * x) * pitch;
            const float *under = top + 2 * width * pitch;
            for (int64_t lane = 0; lane < pitch; lane += LANES) {
                const v16 upper = load(top + lane) + load(top + pitch + lane);
                store(out + lane, (upper + (load(under + lane) + load(under + pitch + lane))) * 0.25f);
            }
        }
}

/* Means over windows, or the largest of each. */
static void pool_windows(const int64_t *r, float *memory)
{
    const int64_t width = r[WINDOW_POOL_width], pitch = r[WINDOW_POOL_pitch];
    const int64_t rows = r[WINDOW_POOL_rows], columns = r[WINDOW_POOL_columns];
    const float share = (float)(1.0 / (double)(rows * columns));
    float *out = memory + r[WINDOW_POOL_out];
    for (int64_t y = 0; y < r[WINDOW_POOL_height]; y++)
        for (int64_t x = 0; x < width; x++, out += pitch)
            for (int64_t lane = 0; lane < pitch; lane += LANES) {
                const float *first = memory + r[WINDOW_POOL_source] + (y * rows * width + x) * columns * pitch + lane;
                v16 found = r[0] == MAX_POOL ? load(first) : (v16){0};
                for (int64_t ky = 0; ky < rows; ky++)
                    for (int64_t kx = 0; kx < columns; kx++) {
                        const v16 value = load(first + (ky * width * columns + kx) * pitch);
                        if (r[0] == MAX_POOL) found = where(value > found, value) + where(value <= found, found);
                        else found += value;
                    }
                store(out + lane, r[0] == MAX_POOL ? found : found * share);
            }
}

static void copy(float *to, const float *from, int64_t size)
{
    memmove(to, from, (size_t)size * sizeof(float));
}
