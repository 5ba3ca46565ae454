/* Convolutions for training: the product and the activity Σ x² of each window forwards, gradients backwards.

   Images are [pixels][channels]; spikes come as bits, sixteen channels to a word, W words to a pixel (models/fast/core.py),
   graded inputs as numbers. A sum has its terms in ascending order of input row, column and channel, from zero on; then
   comes the bias. So products by events and dense products have the same bits, and images are independent: any number
   of threads gives the same. */

/* A tile of a dense product that stays in registers, in rows and vectors; and the most vectors that events add to. */
#if defined(HAS_AVX512) && HAS_AVX512
enum { TILE = 8, VECTORS = 2, MOST = 24 };
#else
enum { TILE = 4, VECTORS = 1, MOST = 4 };
#endif
enum { WIDE = VECTORS * LANES, GROUP = 16, TILES = 16, CACHED = 1 << 17 };

typedef struct {
    int64_t channels, height, width, outputs, out_height, out_width;
    int64_t kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
} window;

INLINE int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
INLINE int64_t taps_of(const window *k) { return k->kernel_height * k->kernel_width; }
INLINE int64_t words_of(const window *k) { return (k->channels + WORD - 1) / WORD; }
/* How far the kernel reaches beyond its first tap. */
INLINE int64_t reach_y(const window *k) { return (k->kernel_height - 1) * k->dilation_y; }
INLINE int64_t reach_x(const window *k) { return (k->kernel_width - 1) * k->dilation_x; }

INLINE void clear(float *at, int64_t count) { memset(at, 0, (size_t)count * sizeof *at); }

/* ---------------------------------------------------------------- dense products
   out[row][column] = Σ_tap Σ_depth a[tap][row][depth] · w[tap][depth][column], or added to what is there. */
typedef struct {
    const float *a, *w;
    const int64_t *a_taps, *w_taps; /* where each tap begins */
    int64_t taps, depth, row_step, depth_step, w_step;
    int64_t block_step; /* from a block of WIDE columns to the next */
    float *out;
    int64_t out_step;
} product;

/* `exact`: products are exact, or how they are rounded does not matter. */
INLINE void take_tile(const int exact, const int add, const int rows, const int vectors, const product *p, int64_t row,
                      int64_t block)
{
    vec sums[TILE][VECTORS];
    float *out = p->out + row * p->out_step + block * WIDE;
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        UNROLL(2)
        for (int v = 0; v < vectors; v++) sums[n][v] = add ? load(out + n * p->out_step + v * LANES) : splat(0.0f);
    for (int64_t tap = 0; tap < p->taps; tap++) {
        const float *a = p->a + p->a_taps[tap] + row * p->row_step, *w = p->w + p->w_taps[tap] + block * p->block_step;
        for (int64_t d = 0; d < p->depth; d++, a += p->depth_step, w += p->w_step) {
            vec some[VECTORS];
            UNROLL(2)
            for (int v = 0; v < vectors; v++) some[v] = load(w + v * LANES);
            UNROLL(8)
            for (int n = 0; n < rows; n++)
                UNROLL(2)
                for (int v = 0; v < vectors; v++) {
                    const float x = a[n * p->row_step];
                    if (exact) sums[n][v] = add_product(sums[n][v], x, some[v]);
                    else sums[n][v] = sums[n][v] + splat(x) * some[v];
                }
        }
    }
    UNROLL(8)
    for (int n = 0; n < rows; n++)
        UNROLL(2)
        for (int v = 0; v < vectors; v++) store(out + n * p->out_step + v * LANES, sums[n][v]);
}

INLINE void take_block(const int exact, const int add, const int vectors, const product *p, int64_t rows, int64_t block)
{
    int64_t row = 0;
    for (; row + TILE <= rows; row += TILE) take_tile(exact, add, TILE, vectors, p, row, block);
    if (TILE > 4 && row + 4 <= rows) {
        take_tile(exact, add, 4, vectors, p, row, block);
        row += 4;
    }
    for (; row < rows; row++) take_tile(exact, add, 1, vectors, p, row, block);
}

/* Whole vectors of columns. */
INLINE void multiply(const int exact, const int add, const product *p, int64_t rows, int64_t columns)
{
    int64_t block = 0;
    for (; (block + 1) * WIDE <= columns; block++) take_block(exact, add, VECTORS, p, rows, block);
    if (VECTORS > 1 && block * WIDE < columns) take_block(exact, add, 1, p, rows, block);
}

NOINLINE void multiply_rounded(const product *p, int64_t rows, int64_t columns) { multiply(0, 0, p, rows, columns); }
NOINLINE void multiply_exact(const product *p, int64_t rows, int64_t columns) { multiply(1, 0, p, rows, columns); }
NOINLINE void multiply_more(const product *p, int64_t rows, int64_t columns) { multiply(1, 1, p, rows, columns); }

/* ---------------------------------------------------------------- windows of single numbers */

/* Sums over kernel_height × kernel_width places of a plane, in place, each at the window's first one; `room` as large. */
static void sum_windows(const window *k, float *plane, float *room, int64_t height, int64_t width)
{
    const int64_t size = height * width;
    for (int64_t at = 0; at < size; at += LANES) {
        vec sum = load(plane + at);
        for (int64_t n = 1; n < k->kernel_width; n++) sum = sum + load(plane + at + n * k->dilation_x);
        store(room + at, sum);
    }
    for (int64_t at = 0; at < size; at += LANES) {
        vec sum = load(room + at);
        for (int64_t n = 1; n < k->kernel_height; n++) sum = sum + load(room + at + n * k->dilation_y * width);
        store(plane + at, sum);
    }
}

/* The planes are large enough for both directions, with zeros behind the last pixel. */
INLINE int64_t plane_height(const window *k)
{
    return largest(k->height, k->out_height * k->stride_y) + 2 * k->pad_y + 2 * reach_y(k) + 1;
}
INLINE int64_t plane_width(const window *k)
{
    return largest(k->width, k->out_width * k->stride_x) + 2 * k->pad_x + 2 * reach_x(k) + 1;
}

/* Which convolutions have Winograd's form, and the size of its tiles: SIDE × SIDE results of AREA × AREA gradients. */
enum { SIDE = 4, AREA = SIDE + 2, PLACES = AREA * AREA };
INLINE int is_winograd(const window *k)
{
    return k->kernel_height == 3 && k->kernel_width == 3 && k->stride_y == 1 && k->stride_x == 1 && k->dilation_y == 1 &&
           k->dilation_x == 1 && k->pad_y <= 2 && k->pad_x <= 2;
}

/* ---------------------------------------------------------------- memory of one thread */
typedef struct {
    float *plane, *room;         /* squares of pixels, or gradients of activities */
    float *input;                /* an image with its padding, as numbers */
    float *spare;                /* a row of sums that nobody asks for */
    float *image;                /* of results whose channels are no whole vectors */
    float *grads;                /* of a group of images, with zeros around them */
    float *tiles, *products;     /* of Winograd's form */
    int64_t *places;             /* of taps */
    int32_t *events, *counted;   /* lists of a pixel or, backwards, of every channel */
    int64_t size;                /* floats in all */
    int64_t input_height, input_width, top, left, grads_height, grads_width, group, phases, listed;
} workplace;

INLINE void *take(float *base, int64_t *size, int64_t count)
{
    void *found = base ? base + *size : NULL;
    *size += round_up(count, 16) + 64; /* whole vectors are read and written beyond the end */
    return found;
}

static workplace workplace_of(const window *k, float *base, int backwards)
{
    workplace m;
    const int64_t pixels = k->height * k->width;
    const int64_t plane = plane_height(k) * (plane_width(k) + 1) + reach_y(k) * plane_width(k) + reach_x(k);
    memset(&m, 0, sizeof m);
    m.input_height = k->height + 2 * k->pad_y;
    m.input_width = k->width + 2 * k->pad_x;
    m.plane = take(base, &m.size, plane);
    m.room = take(base, &m.size, plane);
    m.input = take(base, &m.size, m.input_height * m.input_width * k->channels);
    m.places = take(base, &m.size, 4 * (taps_of(k) + k->out_height + 8));
    if (!backwards) {
        m.image = take(base, &m.size, k->out_height * k->out_width * round_up(k->outputs, LANES));
        m.spare = take(base, &m.size, k->out_width * round_up(k->outputs, LANES));
        m.events = take(base, &m.size, k->channels + 2 * WORD);
        return m;
    }
    /* An input pixel meets gradients up to `top` rows before the first and `bottom` behind the last. */
    const int64_t pitch = round_up(k->outputs, LANES), whole = is_winograd(k) ? SIDE : 1;
    m.top = largest(0, (reach_y(k) - k->pad_y + k->stride_y - 1) / k->stride_y);
    m.left = largest(0, (reach_x(k) - k->pad_x + k->stride_x - 1) / k->stride_x);
    m.grads_height = m.top + largest(k->out_height, (round_up(k->height, whole) - 1 + k->pad_y) / k->stride_y + 1) + 2;
    m.grads_width = m.left + largest(k->out_width, (round_up(k->width, whole) - 1 + k->pad_x) / k->stride_x + 1) + 2;
    const int64_t one = m.grads_height * m.grads_width * pitch;
    m.group = largest(1, least(GROUP, CACHED / one));
    m.phases = k->stride_y * k->stride_x;
    m.grads = take(base, &m.size, m.group * one);
    m.image = take(base, &m.size, largest(pitch, m.group * pixels * round_up(k->channels, LANES)));
    m.listed = m.group * ((k->height + k->stride_y - 1) / k->stride_y) * ((k->width + k->stride_x - 1) / k->stride_x);
    m.events = take(base, &m.size, (m.listed * m.phases + 1) * k->channels + 2 * WORD);
    m.counted = take(base, &m.size, k->channels * m.phases);
    m.tiles = take(base, &m.size, PLACES * (TILES * pitch + WORD));
    m.products = take(base, &m.size, PLACES * (TILES * round_up(k->channels, WIDE) + WORD));
    return m;
}

/* How many floats a thread needs forwards and backwards, and those of packed weights (`scattered`, `forward`, for
   gradients of inputs) and of sums of weight gradients. */
EXPORT void CORE(conv_sizes)(const window *k, int64_t *sizes)
{
    const int64_t taps = taps_of(k);
    sizes[0] = workplace_of(k, NULL, 0).size;
    sizes[1] = workplace_of(k, NULL, 1).size;
    sizes[2] = k->channels * taps * round_up(k->outputs, LANES);
    sizes[3] = k->channels * taps * round_up(k->outputs, WIDE);
    sizes[4] = k->outputs * (is_winograd(k) ? PLACES : taps) * round_up(k->channels, WIDE);
    sizes[5] = sizes[2];
}

/* The channels of a pixel that are not zero, in ascending order; their number. */
INLINE int32_t list_pixel(const window *k, const uint16_t *bits, const float *x, int32_t *list)
{
    int32_t count = 0;
    if (x) {
        for (int64_t c = 0; c < k->channels; c++) {
            list[count] = (int32_t)c;
            count += x[c] != 0.0f;
        }
        return count;
    }
    return list_bits(bits, words_of(k), list);
}

/* A pixel as numbers; whole vectors are written. */
INLINE void unpack_pixel(const window *k, const uint16_t *bits, const float *x, float *to)
{
    if (x) memcpy(to, x, (size_t)k->channels * sizeof *x);
    else
        for (int64_t c = 0; c < k->channels; c += LANES) store(to + c, numbers_of(bits_at(bits, c)));
}

/* An image with its padding, in m->input. */
static void unpack_image(const window *k, const workplace *m, const uint16_t *bits, const float *x)
{
    clear(m->input, m->input_height * m->input_width * k->channels);
    for (int64_t y = 0; y < k->height; y++) {
        float *to = m->input + ((y + k->pad_y) * m->input_width + k->pad_x) * k->channels;
        for (int64_t n = 0; n < k->width; n++) {
            const int64_t pixel = y * k->width + n;
            unpack_pixel(k, bits ? bits + pixel * words_of(k) : NULL, x ? x + pixel * k->channels : NULL,
                         to + n * k->channels);
        }
        clear(to + k->width * k->channels, least(LANES, k->pad_x * k->channels));
    }
}

/* ---------------------------------------------------------------- forwards */

/* Weights of the layouts below, from [outputs][channels][taps]: `scattered` [channels][taps, the last first][pitch],
   `forward` [blocks][taps][channels][WIDE], `backward` [blocks of channels][taps][outputs][WIDE]. */
EXPORT void CORE(conv_pack)(const window *k, const float *w, float *scattered, float *forward, float *backward)
{
    const int64_t taps = taps_of(k), pitch = round_up(k->outputs, LANES);
    if (scattered) clear(scattered, k->channels * taps * pitch);
    if (forward) clear(forward, round_up(k->outputs, WIDE) * taps * k->channels);
    if (backward) clear(backward, round_up(k->channels, WIDE) * taps * k->outputs);
    for (int64_t o = 0; o < k->outputs; o++)
        for (int64_t c = 0; c < k->channels; c++, w += taps)
            for (int64_t t = 0; t < taps; t++) {
                if (scattered) scattered[(c * taps + taps - 1 - t) * pitch + o] = w[t];
                if (forward) forward[((o / WIDE * taps + t) * k->channels + c) * WIDE + o % WIDE] = w[t];
                if (backward) backward[((c / WIDE * taps + t) * k->outputs + o) * WIDE + c % WIDE] = w[t];
            }
}

/* out += Σ_e x_e w_e over a pixel's events, for one run of `vectors` vectors that stays in registers. */
INLINE void add_run(const int vectors, const int32_t *list, int32_t count, const float *x, const float *w, int64_t pitch,
                    float *out)
{
    vec sums[MOST];
    UNROLL(24)
    for (int v = 0; v < vectors; v++) sums[v] = load(out + v * LANES);
    for (int32_t e = 0; e < count; e++) {
        const float *from = w + list[e] * pitch;
        AS_IT_IS(from);
        UNROLL(24)
        for (int v = 0; v < vectors; v++)
            sums[v] = sums[v] + (x ? splat(x[list[e]]) * load(from + v * LANES) : load(from + v * LANES));
    }
    UNROLL(24)
    for (int v = 0; v < vectors; v++) store(out + v * LANES, sums[v]);
}

INLINE void add_runs(const int32_t *list, int32_t count, const float *x, const float *w, int64_t pitch, float *out,
                     int64_t vectors)
{
#define RUNS(size)                                                           \
    for (; vectors >= size; vectors -= size, out += size * LANES, w += size * LANES) \
        add_run(size, list, count, x, w, pitch, out);
#if defined(HAS_AVX512) && HAS_AVX512
    RUNS(24)
    RUNS(12)
    RUNS(6)
#endif
    RUNS(4)
    RUNS(2)
    RUNS(1)
#undef RUNS
}

/* An input row's part of all sums: each event adds its weights to the output pixels that its taps lead to. */
INLINE void scatter_row(const window *k, const workplace *m, const uint16_t *bits, const float *x, const float *w,
                        int64_t y, float *sums, float *squares)
{
    const int64_t taps = taps_of(k), pitch = round_up(k->outputs, LANES), vectors = pitch / LANES;
    const int64_t kh = k->kernel_height, kw = k->kernel_width;
    const int together = k->stride_x == 1 && k->dilation_x == 1;
    for (int64_t n = 0; n < k->width; n++) {
        const float *values = x ? x + n * k->channels : NULL;
        const int32_t count = list_pixel(k, bits ? bits + n * words_of(k) : NULL, values, m->events);
        float square = 0.0f;
        if (values) for (int32_t e = 0; e < count; e++) square += values[m->events[e]] * values[m->events[e]];
        squares[n] = values ? square : (float)count;
        if (!count) continue;
        for (int64_t i = 0; i < kh; i++) { /* taps with the last first, as weights lie */
            const int64_t row = y + k->pad_y - (kh - 1 - i) * k->dilation_y, out_y = row / k->stride_y;
            if (row < 0 || row % k->stride_y || out_y >= k->out_height) continue;
            float *out = sums + out_y * k->out_width * pitch;
            const float *from = w + i * kw * pitch;
            if (together) {
                const int64_t first = n + k->pad_x - (kw - 1), begin = largest(0, first);
                const int64_t end = least(k->out_width, first + kw);
                if (begin < end)
                    add_runs(m->events, count, values, from + (begin - first) * pitch, taps * pitch,
                             out + begin * pitch, (end - begin) * vectors);
                continue;
            }
            for (int64_t j = 0; j < kw; j++) {
                const int64_t column = n + k->pad_x - (kw - 1 - j) * k->dilation_x, out_x = column / k->stride_x;
                if (column < 0 || column % k->stride_x || out_x >= k->out_width) continue;
                add_runs(m->events, count, values, from + j * pitch, taps * pitch, out + out_x * pitch, vectors);
            }
        }
    }
}

#if LANES == 16 && MOST_VECTORS == 16
/* The same for 3 × 3 kernels and up to two vectors of outputs: the sums of the nine output pixels that a pixel reaches
   stay in registers and move on with it. What lies outside is added to `spare`, or not stored. */
INLINE void slide_row(const int vectors, const window *k, const workplace *m, const uint16_t *bits, const float *w,
                      int64_t y, float *sums, float *squares)
{
    const int64_t pitch = vectors * LANES;
    float *rows[3];
    vec s[3][3][2];
    for (int i = 0; i < 3; i++) {
        const int64_t out_y = y + k->pad_y - 2 + i;
        rows[i] = out_y >= 0 && out_y < k->out_height ? sums + out_y * k->out_width * pitch : m->spare;
    }
#define EACH(i, v)      \
    UNROLL(3)           \
    for (int i = 0; i < 3; i++) \
        UNROLL(2)       \
        for (int v = 0; v < vectors; v++)
#define INSIDE(column) ((column) >= 0 && (column) < k->out_width)
    for (int64_t n = -2; n < k->width + 2; n++) { /* a pixel reaches the columns before − 2, − 1 and 0 of this one */
        const int64_t first = n + k->pad_x - 2, last = first + 2;
        if (INSIDE(last)) {
            EACH(i, v) s[i][2][v] = load(rows[i] + last * pitch + v * LANES);
        } else {
            EACH(i, v) s[i][2][v] = splat(0.0f);
        }
        if (n >= 0 && n < k->width) {
            const int32_t count = list_bits(bits + n * words_of(k), words_of(k), m->events);
            squares[n] = (float)count;
            for (int32_t e = 0; e < count; e++) {
                const float *from = w + m->events[e] * 9 * pitch;
                UNROLL(3)
                for (int j = 0; j < 3; j++) EACH(i, v) s[i][j][v] = s[i][j][v] + load(from + (3 * i + j) * pitch + v * LANES);
            }
        }
        if (n >= 0 && INSIDE(first)) EACH(i, v) store(rows[i] + first * pitch + v * LANES, s[i][0][v]);
        EACH(i, v) s[i][0][v] = s[i][1][v];
        EACH(i, v) s[i][1][v] = s[i][2][v];
    }
#undef INSIDE
#undef EACH
}
#endif

/* A row's sums are complete; the bias is added. */
INLINE void finish_row(const window *k, const float *sums, const float *bias, float *out)
{
    const int64_t pitch = round_up(k->outputs, LANES);
    for (int64_t n = 0; n < k->out_width; n++, sums += pitch, out += k->outputs) {
        int64_t o = 0;
        for (; o + LANES <= k->outputs; o += LANES) {
            vec sum = load(sums + o);
            if (bias) sum = sum + load(bias + o);
            store(out + o, sum);
        }
        for (; o < k->outputs; o++) {
            float sum = sums[o];
            if (bias) sum = sum + bias[o];
            out[o] = sum;
        }
    }
}

/* What one image gives; `squares` is the row of m->plane that its first row of pixels goes to. */
INLINE void forward_by_events(const window *k, const workplace *m, const uint16_t *bits, const float *x, const float *w,
                              const float *bias, float *out, float *squares)
{
    const int64_t pitch = round_up(k->outputs, LANES), row = k->out_width * k->outputs;
    float *sums = pitch == k->outputs ? out : m->image;
    int64_t begun = 0, done = 0;
    for (int64_t y = 0; y <= k->height; y++) {
        const int last = y == k->height;
        const int64_t touched = last ? k->out_height : least(k->out_height, (y + k->pad_y) / k->stride_y + 1);
        if (begun < touched) {
            clear(sums + begun * k->out_width * pitch, (touched - begun) * k->out_width * pitch);
            begun = touched;
        }
#if LANES == 16 && MOST_VECTORS == 16
        const int slides = !x && pitch <= 2 * LANES && k->kernel_height == 3 && k->kernel_width == 3 &&
                           k->stride_y * k->stride_x * k->dilation_y * k->dilation_x == 1;
        if (!last && slides) {
            const uint16_t *row_bits = bits + y * k->width * words_of(k);
            if (pitch == LANES) slide_row(1, k, m, row_bits, w, y, sums, squares + y * plane_width(k));
            else slide_row(2, k, m, row_bits, w, y, sums, squares + y * plane_width(k));
        } else
#endif
        if (!last)
            scatter_row(k, m, bits ? bits + y * k->width * words_of(k) : NULL, x ? x + y * k->width * k->channels : NULL,
                        w, y, sums, squares + y * plane_width(k));
        const int64_t ready = y + k->pad_y - reach_y(k);
        const int64_t complete = last ? k->out_height : ready < 0 ? 0 : least(k->out_height, ready / k->stride_y + 1);
        for (; done < complete; done++)
            finish_row(k, sums + done * k->out_width * pitch, bias, out + done * row);
    }
}

INLINE void forward_dense(const window *k, const workplace *m, const uint16_t *bits, const float *x, const float *w,
                          const float *bias, float *out, float *squares)
{
    const int64_t taps = taps_of(k), pitch = round_up(k->outputs, LANES), row = k->out_width * k->outputs;
    int64_t *a_taps = m->places, *w_taps = m->places + taps;
    product p = {.w = w, .a_taps = a_taps, .w_taps = w_taps, .taps = taps, .depth = k->channels, .depth_step = 1,
                 .row_step = k->stride_x * k->channels, .w_step = WIDE, .block_step = taps * k->channels * WIDE,
                 .out_step = pitch};
    unpack_image(k, m, bits, x);
    for (int64_t t = 0; t < taps; t++) {
        a_taps[t] = (t / k->kernel_width * k->dilation_y * m->input_width + t % k->kernel_width * k->dilation_x) *
                    k->channels;
        w_taps[t] = t * k->channels * WIDE;
    }
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t n = 0; n < k->width; n++) {
            const int64_t pixel = y * k->width + n;
            float sum = 0.0f;
            if (x)
                for (int64_t c = 0; c < k->channels; c++) sum += x[pixel * k->channels + c] * x[pixel * k->channels + c];
            else
                sum = (float)count_bits(bits + pixel * words_of(k), words_of(k));
            squares[y * plane_width(k) + n] = sum;
        }
    for (int64_t y = 0; y < k->out_height; y++) {
        p.a = m->input + y * k->stride_y * m->input_width * k->channels;
        p.out = pitch == k->outputs ? out + y * row : m->image;
        if (x) multiply_rounded(&p, k->out_width, pitch);
        else multiply_exact(&p, k->out_width, pitch);
        finish_row(k, p.out, bias, out + y * row);
    }
}

/* Images first … end − 1: out [N, pixels, outputs] and activity [N, pixels], from bits or, without them, from x.
   `weights` are `scattered` ones or, of a dense product, `forward` ones; bias and activity may be NULL. */
EXPORT void CORE(conv_forward)(const window *k, int64_t dense, const uint16_t *bits, const float *x, const float *weights,
                               const float *bias, float *out, float *activity, float *room,
                               int64_t first, int64_t end)
{
    const workplace m = workplace_of(k, room, 0);
    clear(m.spare, k->out_width * round_up(k->outputs, LANES));
    const int64_t pixels = k->height * k->width, size = k->out_height * k->out_width, wide = plane_width(k);
    const int64_t plane = plane_height(k) * (wide + 1) + reach_y(k) * wide + reach_x(k);
    for (int64_t n = first; n < end; n++) {
        const uint16_t *words = bits ? bits + n * pixels * words_of(k) : NULL;
        const float *numbers = bits ? NULL : x + n * pixels * k->channels;
        float *to = out + n * size * k->outputs, *squares = m.plane + k->pad_y * wide + k->pad_x;
        clear(m.plane, plane + LANES);
        if (dense) forward_dense(k, &m, words, numbers, weights, bias, to, squares);
        else if (bits) forward_by_events(k, &m, words, NULL, weights, bias, to, squares);
        else forward_by_events(k, &m, NULL, numbers, weights, bias, to, squares);
        if (!activity) continue;
        sum_windows(k, m.plane, m.room, plane_height(k), wide);
        for (int64_t y = 0; y < k->out_height; y++)
            for (int64_t at = 0; at < k->out_width; at++)
                activity[n * size + y * k->out_width + at] = m.plane[y * k->stride_y * wide + at * k->stride_x];
    }
}

/* ---------------------------------------------------------------- backwards */

/* An image's gradients with zeros around them; the bias's gradient is their sum. */
static void frame_grads(const window *k, const workplace *m, const float *grads, float *to, float *by_bias)
{
    const int64_t pitch = round_up(k->outputs, LANES), row = m->grads_width * pitch;
    float *sums = m->image;
    clear(sums, pitch);
    clear(to, m->top * row);
    for (int64_t y = 0; y < k->out_height; y++) {
        float *at = to + (m->top + y) * row;
        const float *from = grads + y * k->out_width * k->outputs;
        clear(at, m->left * pitch);
        at += m->left * pitch;
        if (pitch == k->outputs) memcpy(at, from, (size_t)(k->out_width * pitch) * sizeof *at);
        else {
            clear(at, k->out_width * pitch);
            for (int64_t n = 0; n < k->out_width; n++)
                memcpy(at + n * pitch, from + n * k->outputs, (size_t)k->outputs * sizeof *at);
        }
        for (int64_t o = 0; o < pitch; o += LANES) {
            vec sum = splat(0.0f);
            for (int64_t n = 0; n < k->out_width; n++) sum = sum + load(at + n * pitch + o);
            store(sums + o, load(sums + o) + sum);
        }
        clear(at + k->out_width * pitch, (m->grads_width - m->left - k->out_width) * pitch);
    }
    clear(to + (m->top + k->out_height) * row, (m->grads_height - m->top - k->out_height) * row);
    if (by_bias) for (int64_t o = 0; o < k->outputs; o++) by_bias[o] += sums[o];
}

/* The taps of one phase of input pixels, y ≡ phase / stride_x and x ≡ phase % stride_x, and where their gradients lie
   beside those of pixel (⌊y / stride_y⌋, ⌊x / stride_x⌋). */
static int64_t taps_of_phase(const window *k, const workplace *m, int64_t phase, int64_t *numbers, int64_t *places)
{
    const int64_t pitch = round_up(k->outputs, LANES);
    int64_t count = 0;
    for (int64_t t = 0; t < taps_of(k); t++) {
        const int64_t y = phase / k->stride_x + k->pad_y - t / k->kernel_width * k->dilation_y;
        const int64_t x = phase % k->stride_x + k->pad_x - t % k->kernel_width * k->dilation_x;
        if (y % k->stride_y || x % k->stride_x) continue;
        numbers[count] = t;
        places[count++] = ((y / k->stride_y + m->top) * m->grads_width + x / k->stride_x + m->left) * pitch;
    }
    return count;
}

/* Events of a group of images by phase and channel: where the gradients of their taps lie. */
static void list_events(const window *k, const workplace *m, const uint16_t *bits, int64_t images)
{
    const int64_t pitch = round_up(k->outputs, LANES);
    int32_t *found = m->events + m->listed * m->phases * k->channels;
    memset(m->counted, 0, (size_t)(k->channels * m->phases) * sizeof *m->counted);
    for (int64_t n = 0; n < images; n++)
        for (int64_t y = 0; y < k->height; y++)
            for (int64_t x = 0; x < k->width; x++, bits += words_of(k)) {
                const int32_t count = list_pixel(k, bits, NULL, found);
                const int64_t list = (y % k->stride_y * k->stride_x + x % k->stride_x) * k->channels;
                const int64_t at = ((n * m->grads_height + y / k->stride_y) * m->grads_width + x / k->stride_x) * pitch;
                for (int32_t e = 0; e < count; e++) {
                    const int64_t number = list + found[e];
                    m->events[number * m->listed + m->counted[number]++] = (int32_t)at;
                }
            }
}

/* by_weight[tap] += Σ_e gradients at e, for `vectors` vectors of one tap. */
INLINE void sum_grads(const int vectors, const int32_t *list, int32_t count, const float *grads, float *by_weight)
{
    vec sums[4];
    UNROLL(4)
    for (int v = 0; v < vectors; v++) sums[v] = splat(0.0f);
    for (int32_t e = 0; e < count; e++)
        UNROLL(4)
        for (int v = 0; v < vectors; v++) sums[v] = sums[v] + load(grads + list[e] + v * LANES);
    UNROLL(4)
    for (int v = 0; v < vectors; v++) store(by_weight + v * LANES, load(by_weight + v * LANES) + sums[v]);
}

#if defined(HAS_AVX512) && HAS_AVX512
/* All nine taps of a 3 × 3 kernel, two vectors of outputs: eighteen sums in registers. */
INLINE void sum_nine(const int64_t pitch, const int32_t *list, int32_t count, const float *grads, int64_t row,
                     float *by_weight)
{
    vec sums[9][2];
    UNROLL(9)
    for (int t = 0; t < 9; t++) sums[t][0] = sums[t][1] = splat(0.0f);
    for (int32_t e = 0; e < count; e++) {
        const float *at = grads + list[e];
        AS_IT_IS(at);
        UNROLL(3)
        for (int i = 0; i < 3; i++)
            UNROLL(3)
            for (int j = 0; j < 3; j++)
                UNROLL(2)
                for (int v = 0; v < 2; v++)
                    sums[3 * i + j][v] = sums[3 * i + j][v] + load(at + i * row + j * pitch + v * LANES);
    }
    UNROLL(9)
    for (int t = 0; t < 9; t++) { /* gradients lie in the order of the taps, the last first */
        float *to = by_weight + (8 - t) * pitch;
        store(to, load(to) + sums[t][0]);
        store(to + LANES, load(to + LANES) + sums[t][1]);
    }
}

static void sum_nines(const workplace *m, int64_t pitch, const int32_t *list, int32_t count, float *by_weight)
{
    const int64_t row = m->grads_width * pitch;
    for (int64_t o = 0; o < pitch; o += 2 * LANES) {
        const float *grads = m->grads + o;
        if (pitch == 32) sum_nine(32, list, count, grads, row, by_weight + o);
        else if (pitch == 64) sum_nine(64, list, count, grads, row, by_weight + o);
        else if (pitch == 128) sum_nine(128, list, count, grads, row, by_weight + o);
        else sum_nine(pitch, list, count, grads, row, by_weight + o);
    }
}
#endif

/* by_weight [channels][taps][pitch] += of the events of a group of images. */
static void weights_by_events(const window *k, const workplace *m, const uint16_t *bits, int64_t images, float *by_weight)
{
    const int64_t pitch = round_up(k->outputs, LANES), taps = taps_of(k);
    int64_t *numbers = m->places, *places = m->places + taps;
    list_events(k, m, bits, images);
    for (int64_t phase = 0; phase < m->phases; phase++) {
        const int64_t count = taps_of_phase(k, m, phase, numbers, places);
        for (int64_t c = 0; c < k->channels; c++) {
            const int64_t list = phase * k->channels + c;
            const int32_t *events = m->events + list * m->listed, found = m->counted[list];
            float *to = by_weight + c * taps * pitch;
            if (!found) continue;
#if defined(HAS_AVX512) && HAS_AVX512
            if (k->kernel_height == 3 && k->kernel_width == 3 && m->phases == 1 && k->dilation_y == 1 &&
                k->dilation_x == 1 && places[8] == 0 && pitch % (2 * LANES) == 0) {
                sum_nines(m, pitch, events, found, to);
                continue;
            }
#endif
            for (int64_t t = 0; t < count; t++) {
                int64_t o = 0;
                for (; o + 4 * LANES <= pitch; o += 4 * LANES)
                    sum_grads(4, events, found, m->grads + places[t] + o, to + numbers[t] * pitch + o);
                for (; o < pitch; o += LANES)
                    sum_grads(1, events, found, m->grads + places[t] + o, to + numbers[t] * pitch + o);
            }
        }
    }
}

/* The same of one image as numbers, in m->input, whose gradients are `grads`. */
static void weights_dense(const window *k, const workplace *m, const float *grads, float *by_weight)
{
    const int64_t pitch = round_up(k->outputs, LANES), taps = taps_of(k);
    int64_t *a_taps = m->places, *w_taps = m->places + k->out_height;
    product p = {.a_taps = a_taps, .w_taps = w_taps, .taps = k->out_height, .depth = k->out_width, .row_step = 1,
                 .depth_step = k->stride_x * k->channels, .w_step = pitch, .block_step = WIDE, .out_step = taps * pitch,
                 .w = grads + (m->top * m->grads_width + m->left) * pitch};
    for (int64_t y = 0; y < k->out_height; y++) {
        a_taps[y] = y * k->stride_y * m->input_width * k->channels;
        w_taps[y] = y * m->grads_width * pitch;
    }
    for (int64_t t = 0; t < taps; t++) {
        p.a = m->input + (t / k->kernel_width * k->dilation_y * m->input_width + t % k->kernel_width * k->dilation_x) *
                             k->channels;
        p.out = by_weight + t * pitch;
        multiply_more(&p, k->channels, pitch);
    }
}

/* Gradients of an image's inputs: a convolution of framed gradients, one phase of pixels after the other. */
static void inputs_dense(const window *k, const workplace *m, const float *grads, const float *weights, float *out,
                         int64_t out_pitch)
{
    const int64_t pitch = round_up(k->outputs, LANES), taps = taps_of(k);
    int64_t *w_taps = m->places, *a_taps = m->places + taps;
    product p = {.w = weights, .a_taps = a_taps, .w_taps = w_taps, .depth = k->outputs, .row_step = pitch,
                 .depth_step = 1, .w_step = WIDE, .block_step = taps * k->outputs * WIDE,
                 .out_step = k->stride_x * out_pitch};
    for (int64_t phase = 0; phase < m->phases; phase++) {
        const int64_t first_y = phase / k->stride_x, first_x = phase % k->stride_x;
        p.taps = taps_of_phase(k, m, phase, w_taps, a_taps);
        for (int64_t t = 0; t < p.taps; t++) w_taps[t] *= k->outputs * WIDE;
        for (int64_t y = first_y; y < k->height; y += k->stride_y) {
            p.a = grads + y / k->stride_y * m->grads_width * pitch;
            p.out = out + (y * k->width + first_x) * out_pitch;
            multiply_exact(&p, (k->width - first_x + k->stride_x - 1) / k->stride_x, round_up(k->channels, LANES));
        }
    }
}

/* ---------------------------------------------------------------- Winograd's form of a 3 × 3 convolution
   F(4 × 4, 3 × 3): 36 products for sixteen results instead of 144. It rounds differently, so only gradients are taken
   with it. Polynomials are taken at 0, ± NEAR, ± FAR and infinity: with these points the error, 2e-6 of the largest
   result, is a quarter of that with 1 and 2, and their powers are exact. */
#define NEAR 0.75f
#define FAR 1.5f
#define NEAR_2 (NEAR * NEAR)
#define FAR_2 (FAR * FAR)

/* One direction of G w: three weights become six. */
INLINE void turn_weights(const vec *w, int64_t step, vec *out)
{
    const vec first = w[0], middle = w[step], last = w[2 * step];
    const vec near = splat(0.5f / (NEAR_2 * (NEAR_2 - FAR_2))), far = splat(0.5f / (FAR_2 * (FAR_2 - NEAR_2)));
    const vec near_sum = near * (first + splat(NEAR_2) * last), near_middle = near * splat(NEAR) * middle;
    const vec far_sum = far * (first + splat(FAR_2) * last), far_middle = far * splat(FAR) * middle;
    out[0] = first * splat(1.0f / (NEAR_2 * FAR_2));
    out[1] = near_sum + near_middle;
    out[2] = near_sum - near_middle;
    out[3] = far_sum + far_middle;
    out[4] = far_sum - far_middle;
    out[5] = last;
}

/* One direction of Bᵀ d: six gradients become six. */
INLINE void turn_grads(const vec *d, int64_t step, vec *out)
{
    const vec all = splat(-(NEAR_2 + FAR_2)), both = splat(NEAR_2 * FAR_2);
    const vec near_even = multiply_add(splat(-FAR_2), d[2 * step], d[4 * step]);
    const vec near_odd = multiply_add(splat(-FAR_2), d[step], d[3 * step]);
    const vec far_even = multiply_add(splat(-NEAR_2), d[2 * step], d[4 * step]);
    const vec far_odd = multiply_add(splat(-NEAR_2), d[step], d[3 * step]);
    out[0] = multiply_add(both, d[0], multiply_add(all, d[2 * step], d[4 * step]));
    out[1] = multiply_add(splat(NEAR), near_odd, near_even);
    out[2] = multiply_add(splat(-NEAR), near_odd, near_even);
    out[3] = multiply_add(splat(FAR), far_odd, far_even);
    out[4] = multiply_add(splat(-FAR), far_odd, far_even);
    out[5] = multiply_add(both, d[step], multiply_add(all, d[3 * step], d[5 * step]));
}

/* One direction of Aᵀ m: six products become four results. */
INLINE void turn_products(const vec *m, int64_t step, vec *out)
{
    const vec near_sum = m[step] + m[2 * step], near_difference = m[step] - m[2 * step];
    const vec far_sum = m[3 * step] + m[4 * step], far_difference = m[3 * step] - m[4 * step];
    out[0] = m[0] + near_sum + far_sum;
    out[1] = multiply_add(splat(NEAR), near_difference, splat(FAR) * far_difference);
    out[2] = multiply_add(splat(NEAR_2), near_sum, splat(FAR_2) * far_sum);
    out[3] = multiply_add(splat(NEAR * NEAR_2), near_difference,
                          multiply_add(splat(FAR * FAR_2), far_difference, m[5 * step]));
}

/* Weights [PLACES][blocks of channels][outputs][WIDE] from [outputs][channels][3][3], turned by half a turn. */
static void pack_winograd(const window *k, const float *w, float *to)
{
    const int64_t wide = round_up(k->channels, WIDE);
    for (int64_t o = 0; o < k->outputs; o++, w += 9 * k->channels)
        for (int64_t first = 0; first < wide; first += LANES) {
            float turned[9][LANES] = {{0}};
            vec given[9], half[3][AREA], whole[AREA];
            for (int64_t c = first; c < least(first + LANES, k->channels); c++)
                for (int t = 0; t < 9; t++) turned[8 - t][c - first] = w[9 * c + t];
            for (int t = 0; t < 9; t++) given[t] = load(turned[t]);
            for (int j = 0; j < 3; j++) turn_weights(given + j, 3, half[j]);
            for (int i = 0; i < AREA; i++) {
                turn_weights(&half[0][i], AREA, whole);
                for (int j = 0; j < AREA; j++)
                    store(to + (AREA * i + j) * k->outputs * wide + (first / WIDE * k->outputs + o) * WIDE + first % WIDE,
                          whole[j]);
            }
        }
}

/* A tile's gradients, sixteen outputs at a time. */
INLINE void enter_tile(const float *from, int64_t row, int64_t pitch, float *to, int64_t step)
{
    for (int64_t o = 0; o < pitch; o += LANES) {
        vec half[AREA][AREA], whole[AREA];
        UNROLL(6)
        for (int j = 0; j < AREA; j++) {
            vec d[AREA];
            UNROLL(6)
            for (int i = 0; i < AREA; i++) d[i] = load(from + i * row + j * pitch + o);
            turn_grads(d, 1, half[j]);
        }
        UNROLL(6)
        for (int i = 0; i < AREA; i++) {
            turn_grads(&half[0][i], AREA, whole);
            UNROLL(6)
            for (int j = 0; j < AREA; j++) store(to + (AREA * i + j) * step + o, whole[j]);
        }
    }
}

/* A tile's products become SIDE × SIDE pixels, of which `height` × `width` are inside. */
INLINE void leave_tile(const float *from, int64_t step, int64_t channels, int64_t height, int64_t width, float *to,
                       int64_t row, int64_t pitch)
{
    for (int64_t c = 0; c < channels; c += LANES) {
        vec half[AREA][SIDE], whole[SIDE];
        UNROLL(6)
        for (int j = 0; j < AREA; j++) {
            vec m[AREA];
            UNROLL(6)
            for (int i = 0; i < AREA; i++) m[i] = load(from + (AREA * i + j) * step + c);
            turn_products(m, 1, half[j]);
        }
        UNROLL(4)
        for (int i = 0; i < SIDE; i++) {
            turn_products(&half[0][i], SIDE, whole);
            if (i < height)
                for (int64_t j = 0; j < width; j++) store(to + i * row + j * pitch + c, whole[j]);
        }
    }
}

/* Of a group of images whose framed gradients are m->grads. */
static void inputs_winograd(const window *k, const workplace *m, int64_t images, const float *weights, float *out,
                            int64_t out_pitch)
{
    static const int64_t at_once[1] = {0};
    const int64_t pitch = round_up(k->outputs, LANES), across = (k->width + SIDE - 1) / SIDE;
    const int64_t each = across * ((k->height + SIDE - 1) / SIDE), count = images * each;
    const int64_t wide = round_up(k->channels, WIDE), row = m->grads_width * pitch, step = TILES * wide + WORD;
    const int64_t entered = TILES * pitch + WORD; /* not a power of two: such addresses share places in a cache */
    const float *corner = m->grads + (k->pad_y - 2 + m->top) * row + (k->pad_x - 2 + m->left) * pitch;
    product p = {.a_taps = at_once, .w_taps = at_once, .taps = 1, .depth = k->outputs, .row_step = pitch,
                 .depth_step = 1, .w_step = WIDE, .block_step = k->outputs * WIDE, .out_step = wide};
    for (int64_t tile = 0; tile < count; tile += TILES) {
        const int64_t some = least(TILES, count - tile);
        for (int64_t n = 0; n < some; n++) {
            const int64_t image = (tile + n) / each, y = (tile + n) % each / across * SIDE, x = (tile + n) % across * SIDE;
            enter_tile(corner + (image * m->grads_height + y) * row + x * pitch, row, pitch, m->tiles + n * pitch, entered);
        }
        for (int64_t n = 0; n < PLACES; n++) {
            p.a = m->tiles + n * entered;
            p.w = weights + n * k->outputs * wide;
            p.out = m->products + n * step;
            multiply_exact(&p, some, round_up(k->channels, LANES));
        }
        for (int64_t n = 0; n < some; n++) {
            const int64_t image = (tile + n) / each, y = (tile + n) % each / across * SIDE, x = (tile + n) % across * SIDE;
            leave_tile(m->products + n * wide, step, k->channels, least(SIDE, k->height - y), least(SIDE, k->width - x),
                       out + ((image * k->height + y) * k->width + x) * out_pitch, k->width * out_pitch, out_pitch);
        }
    }
}

/* Weights for gradients of inputs. */
EXPORT void CORE(conv_pack_backward)(const window *k, const float *w, float *to)
{
    if (is_winograd(k)) pack_winograd(k, w, to);
    else CORE(conv_pack)(k, w, NULL, NULL, to);
}

/* The gradient through activities, 2 x Σ of those whose windows the pixel is in, is added; and whole pixels written. */
static void finish_inputs(const window *k, const workplace *m, const uint16_t *bits, const float *x,
                          const float *by_activity, const float *from, int64_t pitch, float *out)
{
    const int64_t wide = plane_width(k);
    const float *sums = m->plane + k->pad_y * wide + k->pad_x;
    if (by_activity) {
        const int64_t plane = plane_height(k) * (wide + 1) + reach_y(k) * wide + reach_x(k);
        clear(m->plane, plane + LANES);
        for (int64_t y = 0; y < k->out_height; y++)
            for (int64_t n = 0; n < k->out_width; n++)
                m->plane[(y * k->stride_y + reach_y(k)) * wide + n * k->stride_x + reach_x(k)] =
                    by_activity[y * k->out_width + n];
        sum_windows(k, m->plane, m->room, plane_height(k), wide);
    }
    for (int64_t y = 0; y < k->height; y++)
        for (int64_t n = 0; n < k->width; n++) {
            const int64_t pixel = y * k->width + n;
            const float *values = from + pixel * pitch;
            float *to = out + pixel * k->channels;
            const float factor = by_activity ? 2.0f * sums[y * wide + n] : 0.0f;
            int64_t c = 0;
            if (by_activity)
                for (; c + LANES <= k->channels; c += LANES) {
                    const vec inputs = x ? load(x + pixel * k->channels + c) : numbers_of(bits_at(bits + pixel * words_of(k), c));
                    store(to + c, load(values + c) + splat(factor) * inputs);
                }
            else if (to == values) continue;
            for (; c < k->channels; c++) {
                const float input = x ? x[pixel * k->channels + c] : (float)(bits[pixel * words_of(k) + c / WORD] >> c % WORD & 1);
                to[c] = values[c] + factor * input;
            }
        }
}

/* Images first … end − 1, from their gradients by_out [N, pixels, outputs] and by_activity [N, pixels]: those of inputs
   [N, pixels, channels], with `weights` of conv_pack_backward; and, added to what is there, of weights [channels][taps]
   [pitch] and biases [outputs]. Any of them may be NULL. `dense` says how weight gradients are taken. */
EXPORT void CORE(conv_backward)(const window *k, int64_t dense, const uint16_t *bits, const float *x, const float *weights,
                                const float *by_out, const float *by_activity, float *by_input, float *by_weight,
                                float *by_bias, float *room, int64_t first, int64_t end)
{
    const workplace m = workplace_of(k, room, 1);
    const int64_t pixels = k->height * k->width, size = k->out_height * k->out_width * k->outputs;
    const int64_t one = m.grads_height * m.grads_width * round_up(k->outputs, LANES);
    const int64_t pitch = round_up(k->channels, LANES);
    for (int64_t n = first; n < end; n += m.group) {
        const int64_t images = least(m.group, end - n);
        const uint16_t *words = bits ? bits + n * pixels * words_of(k) : NULL;
        for (int64_t i = 0; i < images && by_out; i++)
            frame_grads(k, &m, by_out + (n + i) * size, m.grads + i * one, by_bias);
        if (by_out && by_weight && !dense && bits) weights_by_events(k, &m, words, images, by_weight);
        float *to = by_input + n * pixels * k->channels, *whole = pitch == k->channels ? to : m.image;
        if (by_input && by_out && is_winograd(k)) inputs_winograd(k, &m, images, weights, whole, pitch);
        for (int64_t i = 0; i < images; i++, to += pixels * k->channels, whole += pixels * pitch) {
            const float *grads = m.grads + i * one;
            const uint16_t *own = bits ? words + i * pixels * words_of(k) : NULL;
            const float *numbers = bits ? NULL : x + (n + i) * pixels * k->channels;
            if (by_out && by_weight && (dense || !bits)) {
                unpack_image(k, &m, own, numbers);
                weights_dense(k, &m, grads, by_weight);
            }
            if (!by_input) continue;
            if (!by_out) clear(whole, pixels * pitch);
            else if (!is_winograd(k)) inputs_dense(k, &m, grads, weights, whole, pitch);
            finish_inputs(k, &m, own, numbers, by_activity ? by_activity + (n + i) * (size / k->outputs) : NULL, whole,
                          pitch, to);
        }
    }
}

/* [outputs][channels][taps] from `parts` sums [channels][taps][pitch], added in their order. */
EXPORT void CORE(conv_gather)(const window *k, const float *sums, int64_t parts, float *to)
{
    const int64_t taps = taps_of(k), pitch = round_up(k->outputs, LANES), size = k->channels * taps * pitch;
    for (int64_t at = 0; at < k->channels * taps; at++)
        for (int64_t o = 0; o < k->outputs; o++) {
            float sum = sums[at * pitch + o];
            for (int64_t part = 1; part < parts; part++) sum = sum + sums[part * size + at * pitch + o];
            to[o * k->channels * taps + at] = sum;
        }
}
