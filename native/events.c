/* Passes over events: from streams and recordings to bins, from words and lines of recordings to events, and random
   changes.

   Each pass has a numpy version with the same bits (runtime/binning, runtime/readers, train/data). Times are any int64,
   so differences of two times are computed modulo 2^64 in uint64_t, where they are exact and never undefined. */
#include "vectors.h"
#include "generated.h"
#include "program.h"
#include "noise.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "events and recordings are little-endian: without the core, numpy reads them on this processor"
#endif

/* ---------------------------------------------------------------- one event

   An event has thirteen bytes without padding (EVENT in runtime/events/arrays.py), so its fields are not aligned and
   must be copied. */
enum { EVENT_BYTES = 13 };

typedef struct {
    int64_t t;
    uint16_t x, y;
    uint8_t p;
} event;

INLINE event read_event(const uint8_t *events, int64_t number)
{
    const uint8_t *at = events + number * EVENT_BYTES;
    event e;
    memcpy(&e.t, at, 8);
    memcpy(&e.x, at + 8, 2);
    memcpy(&e.y, at + 10, 2);
    e.p = at[12];
    return e;
}

INLINE void write_event(uint8_t *events, int64_t number, event e)
{
    uint8_t *at = events + number * EVENT_BYTES;
    memcpy(at, &e.t, 8);
    memcpy(at + 8, &e.x, 2);
    memcpy(at + 10, &e.y, 2);
    at[12] = e.p;
}

INLINE uint32_t read_word(const uint8_t *words, int64_t number)
{
    uint32_t word;
    memcpy(&word, words + 4 * number, 4);
    return word;
}

/* ---------------------------------------------------------------- bins of a stream

   The open bin and the counters of its stream. OpenBin in runtime/binning/open_bin.py lists the same fields, because
   numpy needs them when there is no core. A test compares the two lists, so no generated code is needed. */
typedef struct {
    const uint32_t *columns, *rows; /* added to an event's cell for each x and each y */
    uint8_t *cells;                 /* counts of the open bin, which stop at 255 */
    uint8_t *frame;                 /* receives the first bin that ends, in full; then NULL: later bins are listed */
    uint64_t *busy;                 /* listed bins, which are not silent; NULL: there is no room for any */
    int64_t *starts;                /* position of the first cell of each listed bin */
    uint32_t *listed_cells;
    uint8_t *listed_values;
    int64_t width, height, polarities, plane; /* the sensor; number of cells between two polarities */
    int64_t size, limit, last; /* number of cells; largest value; number of bins, or −1 if unlimited */
    uint64_t bin_us, index; /* index of the open bin */
    int64_t origin, known, touched; /* origin is valid once it is known; touched: an event has reached the open bin */
    int64_t events, off_sensor, bad_polarity, before, after, late; /* all events, and those in no bin by reason */
    int64_t surplus, clipped; /* events beyond 255 in the open bin; events that complete bins lost */
    int64_t bins_listed, cells_listed, counted; /* numbers of written entries; counted: the sum of all values */
    int64_t *ends;         /* of each listed bin that a number of events may end: its end in microseconds */
    int64_t most, in_bin;  /* a bin ends with so many events, 0: with its time alone; events in the open bin */
    int64_t anchor;        /* where bin `base` begins: the origin, or the event that ended the bin before */
    uint64_t base;
    int64_t frame_end;     /* of the bin in `frame` */
    int64_t last_time;     /* of the last event in the open bin */
} open_bin;

/* Where the open bin ends by its time. */
INLINE int64_t end_of_open(const open_bin *b)
{
    return (int64_t)((uint64_t)b->anchor + (b->index - b->base + 1) * b->bin_us);
}

/* Moves one count to the list, clipped to the limit. */
INLINE void list_cell(open_bin *b, int64_t cell)
{
    const int64_t count = b->cells[cell], value = count < b->limit ? count : b->limit;
    b->cells[cell] = 0;
    b->listed_cells[b->cells_listed] = (uint32_t)cell;
    b->listed_values[b->cells_listed++] = (uint8_t)value;
    b->counted += value;
    b->clipped += count - value;
}

/* Moves so many counts, clipped to the limit. Compilers vectorise loops of fixed length already at -O2; one loop over
   all cells would take five times as long. */
NOINLINE void cut_counts(open_bin *b, const uint8_t *from, uint8_t *to, int64_t size)
{
    enum { BLOCK = 256 };
    const uint8_t limit = (uint8_t)b->limit;
    for (int64_t start = 0; start < size; start += BLOCK) {
        const int64_t left = size - start;
        uint8_t counts[BLOCK] = {0}, values[BLOCK];
        uint32_t total = 0, kept = 0;
        memcpy(counts, from + start, left < BLOCK ? (size_t)left : BLOCK);
        for (int k = 0; k < BLOCK; k++) values[k] = counts[k] < limit ? counts[k] : limit;
        for (int k = 0; k < BLOCK; k++) total += counts[k];
        for (int k = 0; k < BLOCK; k++) kept += values[k];
        memcpy(to + start, values, left < BLOCK ? (size_t)left : BLOCK);
        b->counted += kept;
        b->clipped += total - kept;
    }
}

/* Move all counts to the frame. */
NOINLINE void take_frame(open_bin *b)
{
    cut_counts(b, b->cells, b->frame, b->size);
    memset(b->cells, 0, (size_t)b->size);
    b->frame = NULL;
}

INLINE int64_t on_sensor(const open_bin *b, event e)
{
    return e.x < b->width && e.y < b->height && e.p < b->polarities;
}

INLINE int64_t cell_of(const open_bin *b, event e)
{
    return e.p * b->plane + b->rows[e.y] + b->columns[e.x];
}

/* Completes the open bin and moves its counts out. `first` is the event that opened it, or −1 if an earlier call
   did. After few events it is faster to look up their cells than to check every cell of a large sensor. */
NOINLINE void complete(open_bin *b, const uint8_t *events, int64_t first, int64_t stop, int64_t end)
{
    const int64_t before = b->cells_listed;
    if (b->frame != NULL) {
        take_frame(b);
        b->frame_end = end;
    } else if (first >= 0 && 8 * (stop - first) < b->size) {
        for (int64_t i = first; i < stop; i++) {
            const event e = read_event(events, i);
            if (on_sensor(b, e) && b->cells[cell_of(b, e)]) list_cell(b, cell_of(b, e));
        }
    } else
        for (int64_t cell = 0; cell < b->size; cell++)
            if (b->cells[cell]) list_cell(b, cell);
    if (b->cells_listed > before) {
        if (b->most) b->ends[b->bins_listed] = end;
        b->busy[b->bins_listed] = b->index;
        b->starts[b->bins_listed++] = before;
    }
    b->clipped += b->surplus;
    b->surplus = 0;
    b->touched = 0;
    b->in_bin = 0;
}

/* The times of the open bin: t belongs to it if t − begin < length, modulo 2^64. An earlier t wraps to a large
   number, which is never below the length, because the length ends at the last int64 time. No event fits a length of
   0. */
typedef struct {
    uint64_t begin, length;
} span;

INLINE span times_of(const open_bin *b)
{
    const uint64_t last_time = (uint64_t)INT64_MAX - (uint64_t)b->anchor, since = b->index - b->base;
    const uint64_t low = since * b->bin_us;
    const int beyond = since > UINT64_MAX / b->bin_us || low > last_time;
    if (!b->known || beyond || (b->last >= 0 && b->index == (uint64_t)b->last)) return (span){0, 0};
    return (span){(uint64_t)b->anchor + low, last_time - low < b->bin_us ? last_time - low + 1 : b->bin_us};
}

/* Counts events from number `i` on; returns the first one that is not in the open bin. The caller handles all rarer
   cases, so that everything this loop needs stays in registers. */
NOINLINE int64_t count_run(open_bin *b, span open, const uint8_t *events, int64_t i, int64_t count)
{
    const open_bin fixed = *b; /* a copy: stores to bytes may alias *b, which would be reloaded for every event */
    const int64_t start = i;
    int64_t surplus = 0;
    if (fixed.most && count - i > fixed.most - fixed.in_bin) count = i + fixed.most - fixed.in_bin;
    for (; i < count; i++) {
        const event e = read_event(events, i);
        if (!on_sensor(&fixed, e) || (uint64_t)e.t - open.begin >= open.length) break;
        uint8_t *cell = fixed.cells + cell_of(&fixed, e);
        const uint8_t full = *cell == UINT8_MAX;
        *cell = (uint8_t)(*cell + !full);
        surplus += full;
    }
    b->surplus += surplus;
    b->touched |= i > start;
    b->in_bin += i - start;
    return i;
}

/* Counts events from `start` on; returns their number, or the first one that ends a bin for which there is no room. A bin
   that is full ends with its last event: at once, or where there is no room as soon as this is called again. */
EXPORT int64_t axonnx_push(open_bin *b, const uint8_t *events, int64_t start, int64_t count)
{
    int64_t i = start, first = -1;
    span open = times_of(b);
    for (;;) {
        if (b->most && b->in_bin == b->most) {
            if (b->frame == NULL && b->busy == NULL) break;
            complete(b, events, first, i, b->last_time);
            b->base = ++b->index;
            b->anchor = b->last_time;
            open = times_of(b);
            first = i;
        }
        const int64_t from = i;
        i = count_run(b, open, events, i, count);
        if (b->most && i > from) b->last_time = read_event(events, i - 1).t;
        if (b->most && b->in_bin == b->most) continue;
        if (i == count) break;
        const event e = read_event(events, i);
        if (e.x >= b->width || e.y >= b->height)
            b->off_sensor++;
        else if (e.p >= b->polarities)
            b->bad_polarity++;
        else if (!b->known) {
            b->anchor = b->origin = e.t;
            b->known = 1;
            open = times_of(b);
            continue; /* with the same event */
        } else if (e.t < b->origin)
            b->before++;
        else {
            uint64_t index = e.t < b->anchor ? 0 : b->base + ((uint64_t)e.t - (uint64_t)b->anchor) / b->bin_us;
            const int after = b->last >= 0 && index >= (uint64_t)b->last;
            if (after) index = (uint64_t)b->last;
            if (index > b->index) {
                if (b->frame == NULL && b->busy == NULL) break;
                complete(b, events, first, i, end_of_open(b));
                b->index = index;
                open = times_of(b);
                first = i;
                continue; /* the event that ended a bin belongs to the next one */
            }
            b->after += after;
            b->late += !after;
        }
        i++;
    }
    b->events += i - start;
    return i;
}

/* ---------------------------------------------------------------- whole recordings
   Count the events of a recording, in whatever order, into `last` bins that stand one after the other in `frames`. */
EXPORT void axonnx_bin(open_bin *b, const uint8_t *events, int64_t count, uint8_t *frames)
{
    const open_bin fixed = *b;
    int64_t known = b->known, origin = b->origin, off_sensor = 0, bad_polarity = 0, before = 0, after = 0, surplus = 0;
    uint64_t begin = 0; /* of the bin in `frame`: mostly the next event is in it too, which saves a division */
    uint8_t *frame = frames;
    for (int64_t i = 0; i < count; i++) {
        const event e = read_event(events, i);
        if (!on_sensor(&fixed, e)) {
            const int64_t off = e.x >= fixed.width || e.y >= fixed.height;
            off_sensor += off;
            bad_polarity += !off;
            continue;
        }
        if (!known) {
            origin = e.t;
            known = 1;
        }
        if (e.t < origin) {
            before++;
            continue;
        }
        const uint64_t elapsed = (uint64_t)e.t - (uint64_t)origin;
        if (elapsed - begin >= fixed.bin_us) {
            const uint64_t index = elapsed / fixed.bin_us;
            if (index >= (uint64_t)fixed.last) {
                after++;
                continue;
            }
            begin = index * fixed.bin_us;
            frame = frames + index * (uint64_t)fixed.size;
        }
        uint8_t *cell = frame + cell_of(&fixed, e);
        const uint8_t full = *cell == UINT8_MAX;
        *cell = (uint8_t)(*cell + !full);
        surplus += full;
    }
    if (fixed.limit < UINT8_MAX) cut_counts(b, frames, frames, fixed.last * fixed.size);
    b->clipped += surplus;
    b->off_sensor += off_sensor;
    b->bad_polarity += bad_polarity;
    b->before += before;
    b->after += after;
}

/* ---------------------------------------------------------------- random changes of training samples
   Every number is a function of (seed, epoch, sample) and of its place, whatever batch the sample is in. */
enum { TOGETHER = 16 }; /* counters at a time: independent of each other, and of a fixed number for the compiler */

/* The random words of TOGETHER counters (first + i, stream, epoch, sample). */
INLINE void random_words(uint32_t (*words)[TOGETHER], uint32_t first, uint32_t stream, uint32_t epoch, uint32_t sample,
                         uint64_t seed)
{
    uint32_t k = (uint32_t)seed, l = (uint32_t)(seed >> 32);
    for (int i = 0; i < TOGETHER; i++) {
        words[0][i] = first + (uint32_t)i;
        words[1][i] = stream;
        words[2][i] = epoch;
        words[3][i] = sample;
    }
    for (int turn = 0; turn < 10; turn++, k += 0x9e3779b9u, l += 0xbb67ae85u)
        for (int i = 0; i < TOGETHER; i++)
            philox_turn(words[0] + i, words[1] + i, words[2] + i, words[3] + i, k, l);
}

/* The nearest whole number, the even one of two: rint, without a library. */
INLINE double nearest(double value)
{
    const double whole = 4503599627370496.0, size = value < 0.0 ? 0.0 - value : value;
    if (!(size < whole)) return value;
    const double rounded = (size + whole) - whole;
    return value < 0.0 ? 0.0 - rounded : rounded;
}

/* What happens to a recording. `Change` in train/data/augment_events.py states the same fields again. */
typedef struct {
    const uint8_t *own, *other; /* events; of another recording that this one is blended with, or none */
    const int64_t *columns, *rows; /* where each column and each row goes, also off the sensor */
    const double *copies;          /* how often an event of each new column occurs in the mean, or NULL: once */
    const double (*table)[8];      /* of normals */
    int64_t own_count, other_count, width, height;
    int64_t keep, move_t, move_x, move_y; /* of 2^32 events so many are kept; how far the other recording is moved */
    double stretch, time_jitter, jitter_x;
    uint64_t seed;
    int64_t epoch, sample;
    int64_t off_sensor; /* kept events that are moved off the sensor */
} change;

/* Append the changed events of one recording; returns the new number of events. */
INLINE int64_t append_changed(change *c, const uint8_t *events, int64_t count, uint32_t stream, int64_t found,
                              uint8_t *out)
{
    const change fixed = *c; /* stores to bytes may alias *c */
    const int64_t limit_t = INT64_C(1) << 62, retimed = fixed.stretch != 1.0 || fixed.time_jitter != 0.0;
    int64_t off_sensor = 0;
    uint32_t words[4][TOGETHER];
    for (int64_t begin = 0; begin < count; begin += TOGETHER) {
        const int64_t end = count - begin < TOGETHER ? count - begin : TOGETHER;
        int64_t kept[TOGETHER], number = 0; /* listed without a jump, which would be guessed wrong half of the time */
        random_words(words, (uint32_t)begin, stream, (uint32_t)fixed.epoch, (uint32_t)fixed.sample, fixed.seed);
        for (int64_t n = 0; n < end; n++) {
            kept[number] = n;
            number += (int64_t)words[0][n] < fixed.keep;
        }
        for (int64_t k = 0; k < number; k++) {
            const int64_t n = kept[k];
            event e = read_event(events, begin + n);
            int64_t x = e.x, y = e.y;
            if (stream == 2) {
                x += fixed.move_x;
                y += fixed.move_y;
                e.t = (int64_t)((uint64_t)e.t + (uint64_t)fixed.move_t);
                if (x < 0 || x >= fixed.width || y < 0 || y >= fixed.height || e.t < 0) continue;
            }
            x = fixed.columns[x];
            y = fixed.rows[y];
            if (fixed.jitter_x != 0.0) x += (int64_t)nearest(fixed.jitter_x * normal(words[3][n], fixed.table));
            if (x < 0 || x >= fixed.width || y < 0 || y >= fixed.height) {
                off_sensor++;
                continue;
            }
            if (retimed) {
                double t = (double)e.t * fixed.stretch;
                if (fixed.time_jitter != 0.0) t += fixed.time_jitter * normal(words[2][n], fixed.table);
                t = nearest(t);
                e.t = t < 0.0 ? 0 : t < (double)limit_t ? (int64_t)t : limit_t;
            }
            e.x = (uint16_t)x;
            e.y = (uint16_t)y;
            int64_t copies = 1;
            if (fixed.copies != NULL) copies = (int64_t)(fixed.copies[x] + ((double)words[1][n] + 0.5) / 4294967296.0);
            for (; copies > 0; copies--) write_event(out, found++, e);
        }
    }
    c->off_sensor += off_sensor;
    return found;
}

/* The changed events of a recording, the earliest first and the others in no order; returns their number. */
EXPORT int64_t axonnx_change(change *c, uint8_t *out)
{
    int64_t first = 0, found = append_changed(c, c->own, c->own_count, 1, 0, out);
    found = append_changed(c, c->other, c->other_count, 2, found, out);
    for (int64_t i = 1; i < found; i++)
        if (read_event(out, i).t < read_event(out, first).t) first = i;
    if (first > 0) {
        const event earliest = read_event(out, first);
        write_event(out, first, read_event(out, 0));
        write_event(out, 0, earliest);
    }
    return found;
}

/* Frames [steps, channels, rows, columns] from those at these places, −1 for zero. Of each count so many events of
   2^16 are kept. */
EXPORT void axonnx_change_frames(const uint8_t *frames, const int64_t *shape, const int64_t *steps, const int64_t *rows,
                                 const int64_t *columns, int64_t keep, uint64_t seed, uint32_t epoch, uint32_t sample,
                                 uint8_t *out)
{
    const int64_t channels = shape[1], height = shape[2], width = shape[3];
    uint32_t words[4][TOGETHER], number = 0; /* of the event: eight of them take one counter */
    for (int64_t t = 0; t < shape[0]; t++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t y = 0; y < height; y++, out += width) {
                const int nothing = steps[t] < 0 || rows[y] < 0;
                const uint8_t *row = nothing ? NULL : frames + ((steps[t] * channels + c) * height + rows[y]) * width;
                for (int64_t x = 0; x < width; x++) out[x] = nothing || columns[x] < 0 ? 0 : row[columns[x]];
                for (int64_t x = 0; x < width && keep < 65536; x++) {
                    uint8_t kept = 0;
                    for (uint8_t left = out[x]; left > 0; left--, number++) {
                        const uint32_t place = number % (8 * TOGETHER);
                        if (place == 0) random_words(words, number / 8, 1, epoch, sample, seed);
                        const uint32_t word = words[place / 2 % 4][place / 8];
                        kept += (int64_t)(place % 2 ? word >> 16 : word & 0xffffu) < keep;
                    }
                    out[x] = kept;
                }
            }
}

/* ---------------------------------------------------------------- recordings

   A counter of few bits that is followed from block to block. Clock in runtime/readers/binary.py explains the rules. */
typedef struct {
    int64_t bits, known, last, turns;
} counter;

/* The time at which the counter shows `raw`. */
INLINE int64_t time_at(counter *c, int64_t raw)
{
    const int64_t range = (int64_t)1 << c->bits, step = raw - c->last;
    if (c->known) {
        if (step < -(range / 2))
            c->turns++;
        else if (step >= range - range / 128 && c->turns > 0)
            c->turns--;
    }
    c->known = 1;
    c->last = raw;
    return raw + c->turns * range;
}

/* Decodes words of EVT 2.0; returns the number of events. `skipped` counts other words by kind, and in its last
   entry events before the first known time. */
EXPORT int64_t axonnx_evt2(const uint8_t *words, int64_t count, counter *clock, int64_t *skipped, uint8_t *events)
{
    counter c = *clock;
    int64_t found = 0, base = c.last + c.turns * ((int64_t)1 << c.bits);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t word = read_word(words, i), kind = word >> 28;
        if (kind <= 1) {
            const event e = {base << 6 | (int64_t)(word >> 22 & 0x3F), word >> 11 & 0x7FF, word & 0x7FF, (uint8_t)kind};
            if (c.known)
                write_event(events, found++, e);
            else
                skipped[16]++;
        } else if (kind == 8)
            base = time_at(&c, word & 0x0FFFFFFF);
        else
            skipped[kind]++;
    }
    *clock = c;
    return found;
}

/* Decodes pairs of time and data of DAT, one event each. */
EXPORT void axonnx_dat(const uint8_t *words, int64_t count, counter *clock, int64_t x_bits, int64_t y_bits,
                       uint8_t *events)
{
    const uint32_t x_mask = ((uint32_t)1 << x_bits) - 1, y_mask = ((uint32_t)1 << y_bits) - 1;
    counter c = *clock;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t data = read_word(words, 2 * i + 1);
        const event e = {time_at(&c, read_word(words, 2 * i)), (uint16_t)(data & x_mask),
                         (uint16_t)(data >> x_bits & y_mask), data >> (x_bits + y_bits) & 1};
        write_event(events, i, e);
    }
    *clock = c;
}

INLINE const uint8_t *after_blanks(const uint8_t *at)
{
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

/* Parses whole lines of numbers; returns the number of events, and in `stopped` the position of the first line that is
   not plain.

   `fields` states the field of each column: 0 t, 1 x, 2 y, 3 p. A line is plain if every cell is a number of at most
   18 digits that fits its field; numpy parses all other lines and reports their errors. The text ends with a line
   feed, which ends every loop because it is no blank, no sign and no digit. */
EXPORT int64_t axonnx_rows(const uint8_t *text, int64_t size, const int64_t *fields, int64_t columns, uint8_t *events,
                           int64_t *stopped)
{
    static const int64_t largest[] = {INT64_MAX, 65535, 65535, 255};
    const uint8_t *line = text, *end = text + size;
    int64_t found = 0;
    while (line < end) {
        const uint8_t *at = line;
        int64_t numbers[4] = {0, 0, 0, 0}, column = 0;
        while (column < columns) {
            at = after_blanks(at);
            const int negative = *at == '-';
            if (negative || *at == '+') at++;
            uint64_t digits = 0, number = 0;
            for (; *at >= '0' && *at <= '9' && digits <= 18; digits++) number = 10 * number + (uint64_t)(*at++ - '0');
            if (digits == 0 || digits > 18) break;
            const int64_t field = fields[column], value = negative ? -(int64_t)number : (int64_t)number;
            if (field > 0 && (value < 0 || value > largest[field])) break;
            numbers[field] = value;
            at = after_blanks(at);
            if (++column < columns && *at++ != ',') break;
        }
        if (column < columns) break;
        if (*at == '\r') at++;
        if (*at != '\n') break;
        const event e = {numbers[0], (uint16_t)numbers[1], (uint16_t)numbers[2], (uint8_t)numbers[3]};
        write_event(events, found++, e);
        line = at + 1;
    }
    *stopped = line - text;
    return found;
}
