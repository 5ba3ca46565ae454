#if USES_CONVOLUTIONS
/* Convolutions, channels last: for each output pixel, the rows of weights of all events in its window.

   Events are listed pixel by pixel, so those in one row of a window are neighbours in the list, and the row of weights
   of event e is e plus a number that belongs to the window. */

/* A part of an event list as the rows of weights that its events use, sixteen at a time; the new end. */
INLINE int64_t list_rows(int32_t *rows, int64_t end, const int32_t *list, int64_t from, int64_t to, int64_t offset)
{
    for (int64_t k = from; k < to; k += LANES) {
        i16 some;
        memcpy(&some, list + k, sizeof some);
        some += (int32_t)offset;
        memcpy(rows + end + k - from, &some, sizeof some);
    }
    return end + to - from;
}

/* The rows of weights for the window of one output pixel, and the inputs they belong to where those are graded. */
INLINE int64_t list_window(const int64_t *r, int64_t y, int64_t x, int graded, int32_t *events)
{
    const int64_t width = r[CONV_width], pitch = r[CONV_pitch], blocks = pitch / LANES, taps = r[CONV_window_width];
    const int64_t ahead = r[CONV_dilation_x], span = ahead == 1 ? taps : 1, parts = ahead == 1 ? 1 : taps;
    const int32_t *list = events + r[CONV_listed], *starts = events + r[CONV_starts];
    int32_t *rows = events + r[CONV_rows], *inputs = events + r[CONV_inputs];
    int64_t end = 0;
    for (int64_t ky = 0; ky < r[CONV_window_height]; ky++) {
        const int64_t row = y * r[CONV_stride_y] - r[CONV_top] + ky * r[CONV_dilation_y];
        if (row < 0 || row >= r[CONV_height]) continue;
        for (int64_t part = 0; part < parts; part++) {
            const int64_t first = x * r[CONV_stride_x] - r[CONV_left] + part * ahead;
            const int64_t left = first < 0 ? 0 : first, right = first + span < width ? first + span : width;
            if (left >= right) continue;
            const int64_t from = starts[(row * width + left) * blocks], to = starts[(row * width + right) * blocks];
            if (graded) list_rows(inputs, end, list, from, to, 0);
            end = list_rows(rows, end, list, from, to, (ky * taps + part - row * width - first) * pitch);
        }
    }
    return end;
}

/* The rows of the image that the windows of one row of output pixels see, where a window's pixels are neighbours. */
enum { MOST_TALL = 16 };
typedef struct {
    const int32_t *starts[MOST_TALL], *list;
    int64_t offsets[MOST_TALL], tall, wide, stride, left, width, pitch, blocks;
} band;

INLINE int is_band(const int64_t *r)
{
    return r[CONV_dilation_x] == 1 && r[CONV_window_height] <= MOST_TALL;
}

INLINE band band_of(const int64_t *r, int64_t y, const int32_t *events)
{
    band b = {.list = events + r[CONV_listed], .wide = r[CONV_window_width], .stride = r[CONV_stride_x],
              .left = r[CONV_left], .width = r[CONV_width], .pitch = r[CONV_pitch], .blocks = r[CONV_pitch] / LANES};
    for (int64_t ky = 0; ky < r[CONV_window_height]; ky++) {
        const int64_t row = y * r[CONV_stride_y] - r[CONV_top] + ky * r[CONV_dilation_y];
        if (row < 0 || row >= r[CONV_height]) continue;
        b.starts[b.tall] = events + r[CONV_starts] + row * b.width * b.blocks;
        b.offsets[b.tall++] = (ky * b.wide - row * b.width) * b.pitch;
    }
    return b;
}

/* ``list_window`` for spikes. Sixteen are copied before it is known whether there is any. */
INLINE int64_t list_in_band(const band *b, int64_t x, int32_t *rows)
{
    const int64_t first = x * b->stride - b->left, end = first + b->wide;
    const int64_t from = (first < 0 ? 0 : first) * b->blocks, to = (end < b->width ? end : b->width) * b->blocks;
    int64_t count = 0;
    if (from >= to) return 0;
    for (int64_t n = 0; n < b->tall; n++) {
        const int32_t *begin = b->list + b->starts[n][from], *stop = b->list + b->starts[n][to];
        const int32_t offset = (int32_t)(b->offsets[n] - first * b->pitch);
        int32_t *out = rows + count;
        count += stop - begin;
        do {
            i16 some;
            memcpy(&some, begin, sizeof some);
            some += offset;
            memcpy(out, &some, sizeof some);
            begin += LANES;
            out += LANES;
        } while (begin < stop);
    }
    return count;
}

/* What follows a convolution pixel by pixel: arithmetic, then neurons. Of a result that nobody else reads, only one
   pixel is kept. ``lean``: the neurons' spikes are bits. */
enum { MOST_OUTPUTS = 1024 };
typedef struct {
    const int64_t *conv, *then[CHAIN], *fire;
    int kept[CHAIN + 1], lean;
} chain;

INLINE int is_graded(const int64_t *r, const int32_t *events)
{
    return r[CONV_graded] && !events[r[CONV_plain]];
}

/* The sums of one block of outputs at one pixel. */
INLINE void sum_block(const int vectors, v16 *sums, const int64_t *r, int64_t done, const float *begins, int64_t count,
                      int graded, const arrays *a)
{
    const int64_t rows = r[CONV_window_height] * r[CONV_window_width] * r[CONV_pitch] + 1;
    const int64_t at = r[CONV_weights] + done * rows;
    begin_sums(vectors, sums, r[CONV_bias] >= 0 ? r[CONV_bias] + done : r[CONV_bias], a->constants, begins + done);
    if (graded)
        add_graded(vectors, sums, a->constants + at, a->events + r[CONV_rows], count, a->memory + r[CONV_source],
                   a->events + r[CONV_inputs]);
    else
        add_spikes(vectors, sums, r[CONV_stored], r[CONV_unit], at, a->events + r[CONV_rows], count, a);
}

INLINE void store_block(const int vectors, const int64_t *r, int64_t done, const float *begins, int64_t count,
                        int graded, float *into, const arrays *a)
{
    v16 sums[16];
    sum_block(vectors, sums, r, done, begins, count, graded, a);
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) store(into + done + LANES * v, sums[v]);
}

/* All outputs at one pixel. */
static void conv_pixel(const int64_t *r, int64_t count, int graded, const float *begins, float *into, const arrays *a)
{
    for (int64_t done = 0, width; done < r[CONV_out_pitch]; done += width) {
        width = block_width(r[CONV_out_pitch] - done);
        switch (width) {
#if WIDEST == 256
        case 256: store_block(16, r, done, begins, count, graded, into, a); break;
        case 128: store_block(8, r, done, begins, count, graded, into, a); break;
#endif
        case 64: store_block(4, r, done, begins, count, graded, into, a); break;
        case 32: store_block(2, r, done, begins, count, graded, into, a); break;
        default: store_block(1, r, done, begins, count, graded, into, a); break;
        }
    }
}

/* One pixel's neurons. */
static int64_t fire_pixel(const chain *c, int64_t at, const float *current, int64_t fired, const arrays *a)
{
    const int64_t pitch = c->conv[CONV_out_pitch];
    if (!c->lean) return fire_part(c->fire, at, at + pitch, current, fired, a->memory, a->constants, a->events);
    const lean layer = lean_layer(c->fire, at, a->memory, a->constants, a->events, a->bits);
    for (int64_t v = 0; v < pitch / LANES; v++)
        fired = fire_one(&layer, v, load(current + LANES * v), at + LANES * v, fired);
    return fired;
}

/* W ∗ x + b from events, and what follows it; the events that reached outputs, and the spikes. */
static int64_t conv_events(const chain *c, const arrays *a, int64_t *spikes)
{
    const int64_t *r = c->conv, pitch = r[CONV_out_pitch];
    const int64_t nothing = r[CONV_window_height] * r[CONV_window_width] * r[CONV_pitch];
    const int graded = is_graded(r, a->events);
    float scratch[2][MOST_OUTPUTS] __attribute__((aligned(64)));
    int64_t seen = 0, fired = 0, at = 0;
    for (int64_t y = 0; y < r[CONV_out_height]; y++)
        for (int64_t x = 0; x < r[CONV_out_width]; x++, at += pitch) {
            const int64_t count = list_window(r, y, x, graded, a->events);
            float *sum = c->kept[0] ? a->memory + r[CONV_out] + at : scratch[0];
            int64_t from = r[CONV_out];
            close_list(a->events + r[CONV_rows], count, (int32_t)nothing);
            conv_pixel(r, count, graded, a->memory + r[CONV_out] + at, sum, a);
            for (int n = 0; n < CHAIN && c->then[n]; n++) {
                float *out = c->kept[n + 1] ? a->memory + c->then[n][ARITHMETIC_out] + at : scratch[(n + 1) % 2];
                operate(c->then[n], at, at + pitch, out, sum, from, a->memory, a->constants);
                from = c->then[n][ARITHMETIC_out];
                sum = out;
            }
            if (c->fire) fired = fire_pixel(c, at, sum, fired, a);
            seen += count;
        }
    if (c->fire) end_spikes(c->fire, fired, a->events);
    *spikes = fired;
    return seen;
}

/* The same with all of it in registers, where outputs are one block, inputs are spikes, spikes are bits, and what
   follows is at most one sum with another buffer (``other``), which is stored (``out``) where somebody reads it. */
INLINE int64_t conv_lean(const int vectors, const chain *c, const float *other, float *out, const arrays *a,
                         int64_t *spikes)
{
    const int64_t *r = c->conv, across = r[CONV_out_width], down = r[CONV_out_height];
    const int64_t nothing = r[CONV_window_height] * r[CONV_window_width] * r[CONV_pitch];
    const float *begins = a->memory + r[CONV_out];
    int32_t *rows = a->events + r[CONV_rows];
    lean layer = lean_layer(c->fire, 0, a->memory, a->constants, a->events, a->bits);
    int64_t seen = 0, fired = 0, at = 0;
    for (int64_t y = 0; y < down; y++) {
        const band b = band_of(r, y, a->events);
        for (int64_t x = 0; x < across; x++, at += vectors * LANES, next_pixel(vectors, &layer)) {
            v16 sums[16];
            const int64_t count = list_in_band(&b, x, rows);
            close_list(rows, count, (int32_t)nothing);
            sum_block(vectors, sums, r, 0, begins + at, count, 0, a);
#pragma GCC unroll 16
            for (int v = 0; v < vectors; v++) {
                if (other) sums[v] = sums[v] + load(other + at + LANES * v);
                if (out) store(out + at + LANES * v, sums[v]);
            }
            fired = fire_sums(vectors, &layer, sums, at, fired);
            seen += count;
        }
    }
    end_spikes(c->fire, fired, a->events);
    *spikes = fired;
    return seen;
}

/* Whether ``conv_lean`` can do it, and if so what it adds and where it stores. */
static int is_lean(const chain *c, const arrays *a, const float **other, float **out)
{
    const int64_t *r = c->conv, *then = c->then[0], size = r[CONV_out_height] * r[CONV_out_width] * r[CONV_out_pitch];
    *other = NULL;
    *out = c->kept[0] ? a->memory + r[CONV_out] : NULL;
    if (!c->fire || !c->lean || c->then[1] || block_width(r[CONV_out_pitch]) != r[CONV_out_pitch]) return 0;
    if (!then) return 1;
    if (c->kept[0] || then[ARITHMETIC_kind] != ADD || then[ARITHMETIC_a_constant] || then[ARITHMETIC_b_constant])
        return 0;
    if (then[ARITHMETIC_a_period] != size || then[ARITHMETIC_b_period] != size) return 0;
    if (then[ARITHMETIC_a] == then[ARITHMETIC_b]) return 0;
    *other = a->memory + (then[ARITHMETIC_a] == r[CONV_out] ? then[ARITHMETIC_b] : then[ARITHMETIC_a]);
    *out = c->kept[1] ? a->memory + then[ARITHMETIC_out] : NULL;
    return 1;
}

static int64_t conv_sparse(const chain *c, const arrays *a, int64_t *spikes)
{
    const float *other;
    float *out;
    if (is_graded(c->conv, a->events) || !is_band(c->conv) || !is_lean(c, a, &other, &out)) return conv_events(c, a, spikes);
    switch (c->conv[CONV_out_pitch]) {
#if WIDEST == 256
    case 256: return conv_lean(16, c, other, out, a, spikes);
    case 128: return conv_lean(8, c, other, out, a, spikes);
#endif
    case 64: return conv_lean(4, c, other, out, a, spikes);
    case 32: return conv_lean(2, c, other, out, a, spikes);
    default: return conv_lean(1, c, other, out, a, spikes);
    }
}

/* How many (event, output pixel) pairs there are. */
static int64_t reached(const int64_t *r, const int32_t *events)
{
    const int64_t blocks = r[CONV_pitch] / LANES, width = r[CONV_width];
    const int32_t *starts = events + r[CONV_starts];
    int64_t seen = 0;
    for (int64_t y = 0; y < r[CONV_out_height]; y++)
        for (int64_t ky = 0; ky < r[CONV_window_height]; ky++) {
            const int64_t row = y * r[CONV_stride_y] - r[CONV_top] + ky * r[CONV_dilation_y];
            if (row < 0 || row >= r[CONV_height]) continue;
            for (int64_t x = 0; x < r[CONV_out_width]; x++)
                for (int64_t kx = 0; kx < r[CONV_window_width]; kx++) {
                    const int64_t column = x * r[CONV_stride_x] - r[CONV_left] + kx * r[CONV_dilation_x];
                    if (column < 0 || column >= width) continue;
                    const int64_t at = (row * width + column) * blocks;
                    seen += starts[at + blocks] - starts[at];
                }
        }
    return seen;
}

/* Where most inputs are active: some outputs at four pixels, every weight read once for all of them. */
INLINE void dense_block(const int vectors, const int64_t *r, const float *weights, int64_t step, int64_t y, int64_t x,
                        int64_t done, float *memory, const float *constants)
{
    const int64_t width = r[CONV_width], pitch = r[CONV_pitch], across = r[CONV_out_width];
    const int64_t channels = r[CONV_channels], into = r[CONV_out_pitch], stride = r[CONV_stride_x];
    const int64_t bias = r[CONV_bias] >= 0 ? r[CONV_bias] + done : r[CONV_bias];
    float *out = memory + r[CONV_out] + (y * across + x) * into + done;
    v16 sums[4][4];
#pragma GCC unroll 4
    for (int p = 0; p < 4; p++) begin_sums(vectors, sums[p], bias, constants, out + (x + p < across ? p : 0) * into);
    for (int64_t ky = 0; ky < r[CONV_window_height]; ky++) {
        const int64_t row = y * r[CONV_stride_y] - r[CONV_top] + ky * r[CONV_dilation_y];
        if (row < 0 || row >= r[CONV_height]) continue;
        for (int64_t kx = 0; kx < r[CONV_window_width]; kx++) {
            const float *from[4], *w = weights + (ky * r[CONV_window_width] + kx) * pitch * step;
            for (int p = 0; p < 4; p++) {
                const int64_t column = (x + p) * stride - r[CONV_left] + kx * r[CONV_dilation_x];
                const int inside = column >= 0 && column < width && x + p < across;
                from[p] = memory + (inside ? r[CONV_source] + (row * width + column) * pitch : r[CONV_zeros]);
            }
            for (int64_t c = 0; c < channels; c++, w += step) {
                AS_IT_IS(w);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    v16 weight = load(w + LANES * v);
                    IN_REGISTER(weight);
#pragma GCC unroll 4
                    for (int p = 0; p < 4; p++) sums[p][v] = add_product(sums[p][v], from[p][c], weight);
                }
            }
        }
    }
    for (int p = 0; p < 4 && x + p < across; p++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) store(out + p * into + LANES * v, sums[p][v]);
}

/* W ∗ x + b of all inputs, 64 outputs at a time. */
static void conv_dense(const int64_t *r, float *memory, const float *constants)
{
    const int64_t nothing = r[CONV_window_height] * r[CONV_window_width] * r[CONV_pitch];
    for (int64_t done = 0, width; done < r[CONV_out_pitch]; done += width) {
        width = block_width(r[CONV_out_pitch] - done);
        for (int64_t lane = 0; lane < width; lane += 64) {
            const float *weights = constants + r[CONV_weights] + done * (nothing + 1) + lane;
            for (int64_t y = 0; y < r[CONV_out_height]; y++)
                for (int64_t x = 0; x < r[CONV_out_width]; x += 4) {
                    if (width == 16) dense_block(1, r, weights, width, y, x, done, memory, constants);
                    else if (width == 32) dense_block(2, r, weights, width, y, x, done, memory, constants);
                    else dense_block(4, r, weights, width, y, x, done + lane, memory, constants);
                }
        }
    }
}
#endif
