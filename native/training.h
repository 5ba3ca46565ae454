/* What training passes share: bits of spikes, functions of the Normal distribution, and noise.

   Spikes are bits in words of sixteen, ⌈channels / 16⌉ words for each pixel; bits beyond the channels are zero. Kernels
   take LANES neurons at a time, counted with the padding: neuron i is lane i mod 16 of word i / 16. */
#ifndef AXONNX_TRAINING_H
#define AXONNX_TRAINING_H
#include <stdlib.h>

#define WORD 16
#define PADDED(channels) (((channels) + WORD - 1) & ~(int64_t)(WORD - 1))

/* Memory that begins with a cache line: a vector that straddles two of them is read twice. */
static void *room_of(size_t bytes)
{
    char *all = malloc(bytes + 64), *room = all ? all + 64 - (uintptr_t)all % 64 : NULL;
    if (room) memcpy(room - sizeof all, &all, sizeof all);
    return room;
}

static void close_room(void *room)
{
    char *all = NULL;
    if (room) memcpy(&all, (char *)room - sizeof all, sizeof all);
    free(all);
}

/* LANES bits from neuron i on; LANES divides WORD, and i is a multiple of LANES. */
INLINE mask bits_at(const uint16_t *bits, int64_t i)
{
    const uint64_t n = (uint64_t)i;
    return (mask)bits[n / WORD] >> (n % WORD) & ((1u << LANES) - 1);
}

INLINE void set_bits(uint16_t *bits, int64_t i, mask chosen)
{
    const uint64_t n = (uint64_t)i;
    if (LANES == WORD) bits[n / WORD] = (uint16_t)chosen;
    else bits[n / WORD] = (uint16_t)((n % WORD ? bits[n / WORD] : 0) | chosen << (n % WORD));
}

INLINE mask first_bits(int lanes)
{
    return lanes >= LANES ? (1u << LANES) - 1 : lanes > 0 ? (1u << lanes) - 1 : 0;
}

/* The numbers of the bits that are set, in ascending order; up to LANES numbers more are written. */
INLINE int32_t list_bits(const uint16_t *bits, int64_t words, int32_t *list)
{
    int32_t count = 0;
    for (int64_t w = 0; w < words; w++) {
        if (bits[w] == 0) continue;
        for (int lane = 0; lane < WORD; lane += LANES)
            count = append(list, count, bits_at(bits + w, lane), (int32_t)(w * WORD + lane));
    }
    return count;
}

INLINE int32_t count_bits(const uint16_t *bits, int64_t words)
{
    int32_t count = 0;
    for (int64_t w = 0; w < words; w++)
#ifdef __GNUC__
        count += __builtin_popcount(bits[w]);
#else
        for (uint16_t left = bits[w]; left; left &= left - 1) count++;
#endif
    return count;
}

/* ---------------------------------------------------------------- functions
   Good to 3e-7 of their value; for gradients, whose last bits may differ between instruction sets. */

/* e^x of x ≤ 0: x = k ln 2 + r with |r| ≤ ½ ln 2; zero below e^−80. */
INLINE vec exp_of(vec x)
{
    const vec near = pick(greater(x, splat(-80.0f)), x, splat(-80.0f));
    const vec shifted = near * splat(1.44269504f) + splat(12582912.0f), k = shifted - splat(12582912.0f);
    const vec r = multiply_add(k, splat(2.12194440e-4f), multiply_add(k, splat(-0.693359375f), near));
    vec p = multiply_add(splat(1.9875691500e-4f), r, splat(1.3981999507e-3f));
    p = multiply_add(p, r, splat(8.3334519073e-3f));
    p = multiply_add(p, r, splat(4.1665795894e-2f));
    p = multiply_add(p, r, splat(1.6666665459e-1f));
    p = multiply_add(p, r, splat(0.5f));
    p = multiply_add(p * r, r, r + splat(1.0f));
    return p * from_bits(shift_up(plus(bits_in(shifted), 127 - 0x4b400000u), 23));
}

/* x = m · 2^e with m from √½ to √2: m and e. */
INLINE vec mantissa_of(vec x, vec *exponent)
{
    const ivec above = plus(bits_in(x), 0u - 0x3f3504f3u), e = above & (int32_t)0xff800000;
#if LANES == 1
    *exponent = floats(e / (1 << 23));
#else
    *exponent = floats(e >> 23);
#endif
    return from_bits(bits_in(x) - e);
}

/* ln(m)/(m − 1) of m from √½ to √2, to 1.3e-6; every operation is rounded, for noise has the same bits everywhere. */
INLINE vec log_ratio(vec r)
{
    vec p = splat(0.119310544f) * r + splat(-0.186807514f);
    p = p * r + splat(0.204917597f);
    p = p * r + splat(-0.249082892f);
    p = p * r + splat(0.333146738f);
    p = p * r + splat(-0.50001145f);
    return p * r + splat(1.00000096f);
}

INLINE vec log_of(vec x)
{
    vec e;
    const vec r = mantissa_of(x, &e) - splat(1.0f);
    vec p = splat(-0.101340567f) * r + splat(0.162341898f);
    p = p * r + splat(-0.172470133f);
    p = p * r + splat(0.198985651f);
    p = p * r + splat(-0.249700717f);
    p = p * r + splat(0.333351141f);
    p = p * r + splat(-0.500003631f);
    p = p * r + splat(0.999999943f);
    return multiply_add(e, splat(0.69314718f), p * r);
}

INLINE vec density(vec z) /* φ(z) */
{
    return exp_of(z * z * splat(-0.5f)) * splat(0.39894228f);
}

/* (1 − Φ(x))/φ(x) of x ≥ 0 as g/(x + 1): g, a polynomial in (x − 3)/(x + 3). */
INLINE vec mills(vec x, vec *below)
{
    const vec s = (x - splat(3.0f)) * reciprocal(x + splat(3.0f));
    vec g = multiply_add(splat(0.000149693478f), s, splat(8.96748935e-05f));
    g = multiply_add(g, s, splat(-0.00118815865f));
    g = multiply_add(g, s, splat(-0.000915902385f));
    g = multiply_add(g, s, splat(0.00748653987f));
    g = multiply_add(g, s, splat(0.00291785002f));
    g = multiply_add(g, s, splat(-0.0569617523f));
    g = multiply_add(g, s, splat(0.113207963f));
    g = multiply_add(g, s, splat(-0.0411904498f));
    g = multiply_add(g, s, splat(-0.241956655f));
    *below = x + splat(1.0f);
    return multiply_add(g, s, splat(1.21836121f));
}

/* φ(x)/Φ(x); `cdf` is Φ(x), accurate in the lower tail. */
INLINE vec inverse_mills(vec x, vec *cdf)
{
    vec below;
    const vec size = pick(greater(splat(1e9f), magnitude(x)), magnitude(x), splat(1e9f));
    const vec g = mills(size, &below), phi = density(size), tail = phi * g * reciprocal(below);
    const mask lower = greater(splat(0.0f), x);
    *cdf = pick(lower, tail, splat(1.0f) - tail);
    return pick(lower, below, phi) * reciprocal(pick(lower, g, *cdf));
}

/* ---------------------------------------------------------------- noise
   Every number is a function of (seed, step, sample, neuron) alone. Firing is decided on squares, so ε|ε| is what is
   drawn: of two uniform numbers u and w, ε² = −ln(u) (1 ± cos(2πw)) are the squares of two independent Normal numbers
   (Box and Muller), and their signs are two more bits. Every operation is rounded as it stands: the same bits in every
   instruction set. Neurons i and i + 16 of a block of 32 share a pair. */
typedef struct {
    uint32_t first, second;
} noise_key;

static noise_key key_of(uint64_t seed, uint64_t step, uint64_t sample)
{
    uint64_t x = seed;
    const uint64_t parts[2] = {step, sample};
    for (int n = 0; n < 2; n++) {
        x += 0x9e3779b97f4a7c15u + parts[n];
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return (noise_key){(uint32_t)x, (uint32_t)(x >> 32)};
}

INLINE ivec hashed(const noise_key *k, uint32_t number)
{
    ivec x = lanes_from(number) ^ (int32_t)k->first;
    x = times(x ^ shift_down(x, 16), 0x7feb352du);
    x = plus(x ^ shift_down(x, 15), k->second);
    x = times(x, 0x846ca68bu);
    return x ^ shift_down(x, 16);
}

/* ε|ε| of pairs of neurons, from pair number `number` on. */
INLINE void draw_pairs(const noise_key *k, uint32_t number, vec *first, vec *second)
{
    const ivec a = hashed(k, number), b = hashed(k, number ^ 0x80000000u);
    const vec u = floats(shift_down(a, 9)) + splat(0.5f); /* times 2^−23 */
    const vec y = floats(b) * splat(2.3283064365386963e-10f), square = y * y;
    vec e, sine = splat(-0.559462455f) * square + splat(2.54401052f);
    const vec r = mantissa_of(u, &e) - splat(1.0f);
    const vec size = (splat(23.0f) - e) * splat(0.69314718f) - log_ratio(r) * r;
    sine = sine * square + splat(-5.16740673f);
    sine = (sine * square + splat(3.14159027f)) * y;
    *first = from_bits(bits_in(size + size * sine) ^ shift_up(a, 31));
    *second = from_bits(bits_in(size - size * sine) ^ (shift_up(a, 30) & (int32_t)0x80000000));
}

/* ε|ε| of the neurons from i on; `kept` carries the second half of a pair to the next call. */
INLINE vec draw(const noise_key *k, int64_t i, vec *kept)
{
    const uint64_t n = (uint64_t)i;
    vec first, second;
#if LANES == WORD
    if (n / WORD % 2) return *kept;
#endif
    draw_pairs(k, (uint32_t)(n / (2 * WORD) * WORD + n % WORD), &first, &second);
    *kept = second;
    return n / WORD % 2 ? second : first;
}
#endif
