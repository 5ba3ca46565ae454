/* Event lists: which elements of a buffer are not zero, in order, and how many come before each pixel. A buffer that is
   no image is one pixel. */

/* What is known of an input's values in one step: graded, or all 0 or 1, with or without their numbers in memory. */
enum { GRADED, PLAIN, PLAIN_IN_MEMORY };

/* Rows of zeros behind the last, so that a loop that takes four at a time need not look where the list ends. */
INLINE void close_list(int32_t *list, int32_t count, int32_t row)
{
    for (int k = 0; k < 3; k++) list[count + k] = row;
}

/* List the active elements of a buffer. */
static void scan(const program *p, const int32_t *r)
{
    const float *source = p->memory + r[SCAN_source];
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

/* Whether the contract admits some inputs that are not all 0 or 1: multiples of 1/scale up to largest/scale. */
NOINLINE int admitted(const float *values, int32_t size, float scale, float largest)
{
    mask refused = 0;
    for (int32_t i = 0; i < size; i += LANES) {
        float last[LANES] = {0};
        for (int32_t k = i; k < size && size - i < LANES; k++) last[k - i] = values[k];
        const vec units = load(size - i < LANES ? last : values + i) * splat(scale); /* exact: a power of two */
        refused |= not_whole(units, largest);
    }
    return refused == 0;
}

/* List the input's events, of so many values: 1 where all are 0 or 1, else 0; −1 where the contract does not admit one.
   The next step's input lies `ahead` floats further on: with many samples that is a cache miss for every line, unless it
   is asked for in time. */
static int scan_input(const program *p, const int32_t *r, const float *source, int32_t values, int64_t ahead)
{
    const int32_t size = r[SCAN_INPUT_size], pitch = r[SCAN_INPUT_pitch];
    int32_t *starts = p->events + r[SCAN_INPUT_starts], *list = p->events + r[SCAN_INPUT_listed], count = 0;
    ivec others = isplat(0); /* than 0 and 1 */
    for (int32_t begin = 0; begin < size; begin += pitch) {
        int32_t i = begin;
        *starts++ = count;
        for (; i + LANES <= begin + pitch && i + LANES <= values; i += LANES) {
            const vec found = load(source + i);
            others |= not_plain(found);
            count = append(list, count, not_zero(found), i);
            if (ahead) PREFETCH(source + ahead + i);
        }
        if (i < begin + pitch) { /* the last few of an input that comes from outside, without padding */
            float last[LANES] = {0};
            for (int32_t k = i; k < values; k++) last[k - i] = source[k];
            others |= not_plain(load(last));
            count = append(list, count, not_zero(load(last)), i);
        }
    }
    *starts = count;
    close_list(list, count, size);
    if (!any(others) && p->largest >= p->scale) return PLAIN;
    return admitted(source, values, (float)p->scale, (float)p->largest) ? GRADED : -1;
}
