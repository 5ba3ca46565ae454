/* Event lists: the non-zero elements of a buffer in order, and the number of events before each pixel. A buffer that
   is not an image counts as one pixel. */

/* What is known about an input's values in one step: graded, or all 0 or 1, with or without the numbers in memory. */
enum { GRADED, PLAIN, PLAIN_IN_MEMORY };

/* Adds rows of zeros after the last one, so that a loop over four rows at a time needs no check of the list's end. */
INLINE void close_list(int32_t *list, int32_t count, int32_t row)
{
    for (int k = 0; k < 3; k++) list[count + k] = row;
}

/* Lists the active elements of a buffer. */
static void scan(const program *p, const int32_t *r)
{
    const scalar *source = p->memory + r[SCAN_source];
    int32_t *list = p->events + r[SCAN_listed], *starts = p->events + r[SCAN_starts], count = 0;
    const int32_t size = r[SCAN_size], pitch = r[SCAN_pitch];
    for (int32_t begin = 0; begin < size; begin += pitch) {
        *starts++ = count;
        for (int32_t i = begin; i < begin + pitch; i += LANES)
            count = append(list, count, not_zero(load(source + i)), i);
    }
    *starts = count;
    close_list(list, count, size);
}

#if LANES > 1
/* Whether the contract allows inputs that are not all 0 or 1: multiples of 1/scale up to largest/scale. */
NOINLINE int admitted(const scalar *values, int32_t size, scalar scale, scalar largest)
{
    mask refused = 0;
    for (int32_t i = 0; i < size; i += LANES) {
        scalar last[LANES] = {0};
        for (int32_t k = i; k < size && size - i < LANES; k++) last[k - i] = values[k];
        const vec units = load(size - i < LANES ? last : values + i) * splat(scale); /* exact: a power of two */
        refused |= not_whole(units, largest);
    }
    return refused == 0;
}
#define ADMITTED(values, size, list, count, scale, largest) admitted(values, size, scale, largest)
#else
/* Whether the contract allows inputs that are not all 0 or 1, of which only those that are not zero are asked. */
NOINLINE int admitted_of(const scalar *values, const int32_t *list, int32_t count, scalar scale, scalar largest)
{
    mask refused = 0;
    for (int32_t k = 0; k < count; k++) {
        const scalar units = values[list[k]] * scale;
        refused |= not_whole(units, largest);
    }
    return refused == 0;
}
#define ADMITTED(values, size, list, count, scale, largest) admitted_of(values, list, count, scale, largest)
#endif

/* Lists the input's events among `values` values. Returns 1 if all are 0 or 1, otherwise 0, or −1 if the contract
   does not allow a value. The next step's input is `ahead` floats further on. With many samples each of its lines
   would be a cache miss, so it is prefetched. */
static int scan_input(const program *p, const int32_t *r, const scalar *source, int32_t values, int64_t ahead)
{
    const int32_t size = r[SCAN_INPUT_size], pitch = r[SCAN_INPUT_pitch];
    int32_t *starts = p->events + r[SCAN_INPUT_starts], *list = p->events + r[SCAN_INPUT_listed], count = 0;
    ivec others = isplat(0); /* values other than 0 and 1 */
    for (int32_t begin = 0; begin < size; begin += pitch) {
        int32_t i = begin;
        *starts++ = count;
        for (; i + LANES <= begin + pitch && i + LANES <= values; i += LANES) {
#ifdef CORE_WHOLE
            const int32_t end = begin + pitch < values ? begin + pitch : values; /* most inputs are silent */
            while (i + 4 < end && !(source[i] | source[i + 1] | source[i + 2] | source[i + 3])) i += 4;
#endif
            const vec found = load(source + i);
            others |= not_plain(found);
            count = append(list, count, not_zero(found), i);
            if (ahead) PREFETCH(source + ahead + i);
        }
        if (i < begin + pitch) { /* the last few values of an input from outside, which has no padding */
            scalar last[LANES] = {0};
            for (int32_t k = i; k < values; k++) last[k - i] = source[k];
            others |= not_plain(load(last));
            count = append(list, count, not_zero(load(last)), i);
        }
    }
    *starts = count;
    close_list(list, count, size);
    if (!any(others) && p->largest >= p->scale) return PLAIN;
    return ADMITTED(source, values, list, count, (scalar)p->scale, (scalar)p->largest) ? GRADED : -1;
}
