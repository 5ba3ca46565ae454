/* Layers: the sums of one synapse or of two that share them, the operations that follow, and the neurons. */

/* ---------------------------------------------------------------- linear */

INLINE void linear_part(const int stored, const int vectors, const synapse *s, const part *b, const int32_t *list,
                        int32_t count, scalar *sums)
{
    add_events(stored, vectors, sums + b->done, s, b->at, b->width, list, count, list);
}

#if HAS_PAIRS
/* Computes W·x for one time step, or for several; `steps` holds the program of each step. */
static void linear_dense(const program *steps, int32_t count, int32_t number)
{
    const int32_t *r = row_of(steps, number), inputs = r[LINEAR_inputs], no_offset[1] = {0};
    const int width = r[LINEAR_dense_stored] == BYTES ? 1 : 2;
    for (int32_t n = 0; n < count; n++)
        pack_inputs(steps + n, row_of(steps + n, number), (int8_t *)steps->packed + (int64_t)n * inputs * width);
    const tile t = {.x = steps->packed, .offsets = no_offset, .weights = steps->weights + 64 * (int64_t)r[LINEAR_dense],
                    .row_step = inputs, .out_step = count > 1 ? row_of(steps + 1, number)[LINEAR_out] - r[LINEAR_out] : 0,
                    .taps = 1, .inputs = inputs, .unit = unit_of_dense(steps, r), .out = steps->memory + r[LINEAR_out]};
    add_tiles(r[LINEAR_dense_stored], &t, count, r[LINEAR_size]);
}
#endif

/* Computes W·x of one synapse and adds it to its sums. */
static void add_linear(const program *p, int32_t number)
{
    const int32_t *r = row_of(p, number);
    scalar *sums = p->memory + r[LINEAR_out];
#if HAS_PAIRS
    if (is_dense(p, r, r[LINEAR_inputs], 1)) {
        linear_dense(p, 1, number);
        return;
    }
#endif
    const synapse s = synapse_of(p, r, r[LINEAR_inputs] + 1, r[LINEAR_size]);
    const int32_t *list = p->events + r[LINEAR_listed], count = p->events[r[LINEAR_counted]];
    if (count == 0) return;
    for (int32_t done = 0; done < s.size;) {
        const part b = part_at(&s, done);
        FOR_VECTORS(s.stored, b.vectors, linear_part, &s, &b, list, count, sums)
        done += b.vectors * LANES;
    }
}

#if USES_CONVOLUTIONS
/* ---------------------------------------------------------------- convolutions, channels last

   For each output pixel, the rows of weights of all events in its window are added. Events are listed pixel by
   pixel. So the events in one row of a window follow each other in the list if its taps are adjacent, and the row of
   weights of event e is e plus a constant of the window. */

/* Appends a part of an event list as rows of weights; returns the new end. */
INLINE int32_t list_rows(int32_t *rows, int32_t end, const int32_t *list, int32_t from, int32_t to, int32_t offset)
{
#if LANES == 1
    for (int32_t k = from; k < to; k++) rows[end + k - from] = list[k] + offset;
#else
    int32_t k = from;
    do { /* Sixteen are copied before we know whether there is any event: a branch here costs more than the copy. */
        ivec some;
        memcpy(&some, list + k, sizeof some);
        some += offset;
        memcpy(rows + end + k - from, &some, sizeof some);
        k += LANES;
    } while (k < to);
#endif
    return end + to - from;
}

/* Lists the rows of weights for the window of one output pixel, and their inputs if these are graded. */
INLINE int32_t list_window(const int32_t *r, int32_t y, int32_t x, int graded, const int32_t *list,
                           const int32_t *starts, int32_t *rows, int32_t *inputs)
{
    const int32_t width = r[CONV_width], pitch = r[CONV_pitch], taps = r[CONV_window_width], ahead = r[CONV_dilation_x];
    const int32_t span = ahead == 1 ? taps : 1, parts = ahead == 1 ? 1 : taps;
    int32_t end = 0;
    for (int32_t ky = 0; ky < r[CONV_window_height]; ky++) {
        const int32_t row = y * r[CONV_stride_y] - r[CONV_top] + ky * r[CONV_dilation_y];
        if (row < 0 || row >= r[CONV_height]) continue;
        for (int32_t part = 0; part < parts; part++) {
            const int32_t first = x * r[CONV_stride_x] - r[CONV_left] + part * ahead;
            const int32_t left = first < 0 ? 0 : first, right = first + span < width ? first + span : width;
            if (left >= right) continue;
            const int32_t from = starts[row * width + left], to = starts[row * width + right];
            if (graded) list_rows(inputs, end, list, from, to, 0);
            end = list_rows(rows, end, list, from, to, (ky * taps + part - row * width - first) * pitch);
        }
    }
    return end;
}

/* The image rows that the windows of one row of output pixels cover, if the taps of a window are adjacent. */
enum { MOST_TALL = 16 };
typedef struct {
    const int32_t *starts[MOST_TALL], *list;
    int32_t offsets[MOST_TALL], tall, wide, stride, left, width, pitch;
} band;

INLINE int is_band(const int32_t *r)
{
    return r[CONV_dilation_x] == 1 && r[CONV_window_height] <= MOST_TALL;
}

INLINE band band_of(const program *p, const int32_t *r, int32_t y)
{
    band b = {.list = p->events + r[CONV_listed], .wide = r[CONV_window_width], .stride = r[CONV_stride_x],
              .left = r[CONV_left], .width = r[CONV_width], .pitch = r[CONV_pitch]};
    for (int32_t ky = 0; ky < r[CONV_window_height]; ky++) {
        const int32_t row = y * r[CONV_stride_y] - r[CONV_top] + ky * r[CONV_dilation_y];
        if (row < 0 || row >= r[CONV_height]) continue;
        b.starts[b.tall] = p->events + r[CONV_starts] + row * b.width;
        b.offsets[b.tall++] = (ky * b.wide - row * b.width) * b.pitch;
    }
    return b;
}

/* Does the same as `list_window` for spikes; everything that is constant along a row of pixels is computed before. */
INLINE int32_t list_in_band(const band *b, int32_t x, int32_t *rows)
{
    const int32_t first = x * b->stride - b->left, end = first + b->wide;
    const int32_t from = first < 0 ? 0 : first, to = end < b->width ? end : b->width;
    int32_t count = 0;
    if (from >= to) return 0;
    for (int32_t n = 0; n < b->tall; n++)
        count = list_rows(rows, count, b->list, b->starts[n][from], b->starts[n][to], b->offsets[n] - first * b->pitch);
    return count;
}

/* Computes one row of output pixels for a part of the outputs; returns the number of (event, pixel) pairs. */
INLINE int64_t conv_part(const int stored, const int vectors, const program *p, const int32_t *r, const synapse *s,
                         const part *b, int32_t y, scalar *sums)
{
    const int32_t *list = p->events + r[CONV_listed], *starts = p->events + r[CONV_starts];
    int32_t *rows = p->events + r[CONV_rows], *inputs = p->events + r[CONV_sources];
    const int32_t nothing = (int32_t)s->rows - 1, across = r[CONV_out_width], pitch = r[CONV_out_pitch];
    const int64_t at = b->at, width = b->width;
    const int banded = !s->x && is_band(r);
    band rows_seen = {.tall = 0};
    int64_t seen = 0;
    if (banded) rows_seen = band_of(p, r, y);
    sums += b->done;
    for (int32_t x = 0; x < across; x++, sums += pitch) {
        const int32_t count = banded ? list_in_band(&rows_seen, x, rows)
                                     : list_window(r, y, x, s->x != NULL, list, starts, rows, inputs);
        close_list(rows, count, nothing);
        add_events(stored, vectors, sums, s, at, width, rows, count, inputs);
        seen += count;
    }
    return seen;
}

#define CONV_PART(stored, vectors, ...) seen = conv_part(stored, vectors, __VA_ARGS__)

static int64_t conv_row_sparse(const program *p, const int32_t *r, const synapse *s, int32_t y, scalar *sums)
{
    int64_t seen = 0;
    for (int32_t done = 0; done < s->size;) {
        const part b = part_at(s, done);
        FOR_VECTORS(s->stored, b.vectors, CONV_PART, p, r, s, &b, y, sums)
        done += b.vectors * LANES;
    }
    return seen;
}

#if HAS_PAIRS
/* Returns the number of windows along one side that contain the pixel `at`, counted from the padding's edge. */
INLINE int64_t windows_at(int32_t at, int32_t taps, int32_t stride, int32_t dilation, int32_t outputs)
{
    int64_t found = 0;
    if (stride == 1 && dilation == 1) { /* no division for the usual window */
        const int32_t last = at < taps - 1 ? at : taps - 1, first = at < outputs ? 0 : at - outputs + 1;
        return last < first ? 0 : last - first + 1;
    }
    for (int32_t k = 0; k < taps && k * dilation <= at; k++)
        found += (at - k * dilation) % stride == 0 && (at - k * dilation) / stride < outputs;
    return found;
}

/* Writes all inputs as small integers, with the image's padding; returns the number of (event, output pixel) pairs. */
static int64_t pack_image(const program *p, const int32_t *r)
{
    const int32_t *starts = p->events + r[CONV_starts], across = r[CONV_dense_width], channels = r[CONV_dense_channels];
    const int32_t height = r[CONV_height], width = r[CONV_width], pitch = r[CONV_pitch], stride = r[CONV_stride_x];
    const int32_t left = r[CONV_left], taps = r[CONV_window_width], ahead = r[CONV_dilation_x];
    const packing k = packing_of(p, r);
    const int64_t bytes = k.bytes ? 1 : 2;
    int64_t seen = 0;
    memset(p->packed, 0, (size_t)(r[CONV_dense_height] * bytes * across * channels));
    for (int32_t y = 0; y < height && y + r[CONV_top] < r[CONV_dense_height]; y++, starts += width) {
        int8_t *to = (int8_t *)p->packed + ((int64_t)(y + r[CONV_top]) * across + left) * channels * bytes;
        const int64_t down = windows_at(y + r[CONV_top], r[CONV_window_height], r[CONV_stride_y], r[CONV_dilation_y],
                                        r[CONV_out_height]);
        const int32_t inside = width + left < across ? width : across - left;
        int64_t covered = 0;
        if (inside > 0 && pitch == channels) /* both rows have the same spacing */
            pack_listed(&k, starts[0], starts[inside], to - (int64_t)y * width * pitch * bytes);
        for (int32_t x = 0; x < inside; x++) {
            if (pitch != channels)
                pack_listed(&k, starts[x], starts[x + 1],
                            to + ((int64_t)x * channels - (int64_t)(y * width + x) * pitch) * bytes);
            covered += (starts[x + 1] - starts[x]) * windows_at(x + left, taps, stride, ahead, r[CONV_out_width]);
        }
        seen += down * covered;
    }
    return seen;
}

static void conv_row_dense(const program *p, const int32_t *r, int32_t y, scalar *sums)
{
    const int32_t across = r[CONV_dense_width], channels = r[CONV_dense_channels];
    const tile t = {
        .x = (const int16_t *)(const void *)((const int8_t *)p->packed + (int64_t)y * r[CONV_stride_y] * across *
                                             channels * (r[CONV_dense_stored] == BYTES ? 1 : 2)),
        .offsets = p->tables + r[CONV_offsets], .weights = p->weights + 64 * (int64_t)r[CONV_dense],
        .row_step = (int64_t)r[CONV_stride_x] * channels, .out_step = r[CONV_out_pitch],
        .taps = r[CONV_window_height] * r[CONV_window_width], .inputs = channels,
        .unit = unit_of_dense(p, r), .out = sums,
    };
    add_tiles(r[CONV_dense_stored], &t, r[CONV_out_width], r[CONV_out_pitch]);
}
#endif
#endif
