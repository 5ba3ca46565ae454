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
    for (int32_t i = 0; i < size; i++) {
        const float units = values[i] * scale; /* exact: a power of two */
        if (!(units >= -largest && units <= largest) || (float)(int32_t)units != units) return 0;
    }
    return 1;
}

typedef struct {
    int32_t *list, count;
    float scale, largest;
    int plain, refused;
} listing;

INLINE void list_input(listing *l, const float *values, int32_t i)
{
    const vec found = load(values);
    const mask there = not_zero(found);
    if (RARE(is_one(found) != there || l->largest < l->scale)) {
        l->plain = GRADED;
        l->refused |= !admitted(values, LANES, l->scale, l->largest);
    }
    l->count = append(l->list, l->count, there, i);
}

/* List the input's events, of so many values: 1 where all are 0 or 1, else 0; −1 where the contract does not admit one.
   The next step's input lies `ahead` floats further on: with many samples that is a cache miss for every line, unless it
   is asked for in time. */
static int scan_input(const program *p, const int32_t *r, const float *source, int32_t values, int64_t ahead)
{
    const int32_t size = r[SCAN_INPUT_size], pitch = r[SCAN_INPUT_pitch];
    int32_t *starts = p->events + r[SCAN_INPUT_starts];
    listing l = {.list = p->events + r[SCAN_INPUT_listed], .scale = (float)p->scale, .largest = (float)p->largest,
                 .plain = PLAIN};
    for (int32_t begin = 0; begin < size; begin += pitch) {
        int32_t i = begin;
        *starts++ = l.count;
        for (; i + LANES <= begin + pitch && i + LANES <= values; i += LANES) {
            list_input(&l, source + i, i);
            if (ahead) PREFETCH(source + ahead + i);
        }
        if (i < begin + pitch) { /* the last few of an input that comes from outside, without padding */
            float last[LANES] = {0};
            for (int32_t k = i; k < values; k++) last[k - i] = source[k];
            list_input(&l, last, i);
        }
    }
    *starts = l.count;
    close_list(l.list, l.count, size);
    return l.refused ? -1 : l.plain;
}
