/* Passes over events: from streams to bins, and from words and lines of recordings to events.

   Each pass has a numpy version with the same bits (runtime/binning/plain.py, runtime/readers). Times are any int64,
   so differences of two times are computed modulo 2^64 in uint64_t, where they are exact and never undefined. */
#include "vectors.h"
#include "generated.h"
#include "program.h"

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
} open_bin;

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

/* Moves all counts to the frame, clipped to the limit. Compilers vectorise loops of fixed length already at -O2; one
   loop over all cells would take five times as long. */
NOINLINE void take_frame(open_bin *b)
{
    enum { BLOCK = 256 };
    const uint8_t limit = (uint8_t)b->limit;
    for (int64_t start = 0; start < b->size; start += BLOCK) {
        const int64_t left = b->size - start;
        uint8_t counts[BLOCK] = {0}, values[BLOCK];
        uint32_t total = 0, kept = 0;
        memcpy(counts, b->cells + start, left < BLOCK ? (size_t)left : BLOCK);
        for (int k = 0; k < BLOCK; k++) values[k] = counts[k] < limit ? counts[k] : limit;
        for (int k = 0; k < BLOCK; k++) total += counts[k];
        for (int k = 0; k < BLOCK; k++) kept += values[k];
        memcpy(b->frame + start, values, left < BLOCK ? (size_t)left : BLOCK);
        b->counted += kept;
        b->clipped += total - kept;
    }
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
NOINLINE void complete(open_bin *b, const uint8_t *events, int64_t first, int64_t stop)
{
    const int64_t before = b->cells_listed;
    if (b->frame != NULL)
        take_frame(b);
    else if (first >= 0 && 8 * (stop - first) < b->size) {
        for (int64_t i = first; i < stop; i++) {
            const event e = read_event(events, i);
            if (on_sensor(b, e) && b->cells[cell_of(b, e)]) list_cell(b, cell_of(b, e));
        }
    } else
        for (int64_t cell = 0; cell < b->size; cell++)
            if (b->cells[cell]) list_cell(b, cell);
    if (b->cells_listed > before) {
        b->busy[b->bins_listed] = b->index;
        b->starts[b->bins_listed++] = before;
    }
    b->clipped += b->surplus;
    b->surplus = 0;
    b->touched = 0;
}

/* The times of the open bin: t belongs to it if t − begin < length, modulo 2^64. An earlier t wraps to a large
   number, which is never below the length, because the length ends at the last int64 time. No event fits a length of
   0. */
typedef struct {
    uint64_t begin, length;
} span;

INLINE span times_of(const open_bin *b)
{
    const uint64_t last_time = (uint64_t)INT64_MAX - (uint64_t)b->origin, low = b->index * b->bin_us;
    const int beyond = b->index > UINT64_MAX / b->bin_us || low > last_time;
    if (!b->known || beyond || (b->last >= 0 && b->index == (uint64_t)b->last)) return (span){0, 0};
    return (span){(uint64_t)b->origin + low, last_time - low < b->bin_us ? last_time - low + 1 : b->bin_us};
}

/* Counts events from number `i` on; returns the first one that is not in the open bin. The caller handles all rarer
   cases, so that everything this loop needs stays in registers. */
NOINLINE int64_t count_run(open_bin *b, span open, const uint8_t *events, int64_t i, int64_t count)
{
    const open_bin fixed = *b; /* a copy: stores to bytes may alias *b, which would be reloaded for every event */
    const int64_t start = i;
    int64_t surplus = 0;
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
    return i;
}

/* Counts events from `start` on; returns their number, or the first one that ends a bin for which there is no room. */
EXPORT int64_t axonnx_push(open_bin *b, const uint8_t *events, int64_t start, int64_t count)
{
    int64_t i = start, first = -1;
    span open = times_of(b);
    while ((i = count_run(b, open, events, i, count)) < count) {
        const event e = read_event(events, i);
        if (e.x >= b->width || e.y >= b->height)
            b->off_sensor++;
        else if (e.p >= b->polarities)
            b->bad_polarity++;
        else if (!b->known) {
            b->origin = e.t;
            b->known = 1;
            open = times_of(b);
            continue; /* with the same event */
        } else if (e.t < b->origin)
            b->before++;
        else {
            uint64_t index = ((uint64_t)e.t - (uint64_t)b->origin) / b->bin_us;
            const int after = b->last >= 0 && index >= (uint64_t)b->last;
            if (after) index = (uint64_t)b->last;
            if (index > b->index) {
                if (b->frame == NULL && b->busy == NULL) break;
                complete(b, events, first, i);
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

/* ---------------------------------------------------------------- recordings

   A counter of few bits that is followed from block to block. Clock in runtime/readers/clock.py explains the rules. */
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
