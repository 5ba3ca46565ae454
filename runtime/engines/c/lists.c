/* Event lists: which elements of a buffer are not zero, in order, and how many come before each sixteen. */

/* Add base + lane for each set bit of a mask to the list's end; the new count. Sixteen numbers may be written. */
INLINE int64_t append(int32_t *list, int64_t count, uint32_t mask, int32_t base)
{
#ifdef __AVX512F__
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32(base));
    _mm512_storeu_si512(list + count, _mm512_maskz_compress_epi32((__mmask16)mask, places));
    return count + __builtin_popcount(mask);
#else
    for (; mask != 0; mask &= mask - 1) list[count++] = base + __builtin_ctz(mask);
    return count;
#endif
}

/* Rows of zeros behind the last, so that whoever takes four at a time need not look where the list ends. */
INLINE void close_list(int32_t *list, int64_t count, int32_t row)
{
    for (int k = 0; k < 3; k++) list[count + k] = row;
}

/* List the active elements of a buffer. */
static void scan(const int64_t *r, const float *memory, int32_t *events)
{
    const float *source = memory + r[SCAN_source];
    int32_t *list = events + r[SCAN_listed], *starts = events + r[SCAN_starts];
    int64_t count = 0, size = r[SCAN_size];
    for (int64_t i = 0; i < size; i += LANES) {
        starts[i / LANES] = (int32_t)count;
        count = append(list, count, not_zero(load(source + i)), (int32_t)i);
    }
    starts[size / LANES] = (int32_t)count;
    close_list(list, count, (int32_t)size);
}

/* Whether the contract admits sixteen inputs that are not all 0 or 1: multiples of 1/scale up to largest/scale. */
static __attribute__((noinline)) int admitted(v16 values, float scale, float largest)
{
    for (int lane = 0; lane < LANES; lane++) {
        const float units = values[lane] * scale; /* exact: a power of two */
        if (!(units >= -largest && units <= largest) || (float)(int32_t)units != units) return 0;
    }
    return 1;
}

/* Sixteen inputs: listed, and looked at; see ``scan_input``. */
typedef struct {
    int32_t *list, *starts;
    int64_t count;
    float scale, largest;
    int plain, refused;
} listing;

INLINE void list_input(listing *l, v16 values, int64_t i)
{
    const uint32_t there = not_zero(values);
    if (__builtin_expect(ones(values) != there || l->largest < l->scale, 0)) {
        l->plain = 0;
        l->refused |= !admitted(values, l->scale, l->largest);
    }
    l->starts[i / LANES] = (int32_t)l->count;
    l->count = append(l->list, l->count, there, (int32_t)i);
}

/* List the input's events, of so many values: 1 where all are 0 or 1, else 0; -1 where the contract does not admit one. */
static int scan_input(const int64_t *r, const float *source, int64_t values, int32_t *events, float scale, float largest)
{
    const int64_t size = r[SCAN_INPUT_size];
    listing l = {.list = events + r[SCAN_INPUT_listed], .starts = events + r[SCAN_INPUT_starts], .scale = scale,
                 .largest = largest, .plain = 1};
    int64_t i = 0;
    for (; i + LANES <= values; i += LANES) list_input(&l, load(source + i), i);
    if (i < size) { /* the last few, and zeros */
        float last[LANES] = {0};
        for (int64_t k = i; k < values; k++) last[k - i] = source[k];
        list_input(&l, load(last), i);
    }
    l.starts[size / LANES] = (int32_t)l.count;
    close_list(l.list, l.count, (int32_t)size);
    return l.refused ? -1 : l.plain;
}
