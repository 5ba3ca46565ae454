/* Vectors of floats and integers, and their masks: the only file that depends on an instruction set.

   One build has one instruction set, chosen by compiler flags: AVX-512 with VNNI, AVX2, NEON or SSE2 (both through
   generic vectors of the compiler), or none (CORE_PLAIN, C99 without extensions), where a vector has one lane.
   Kernels are written for any number of LANES. In every build a product is rounded before it is added. */
#ifndef AXONNX_VECTORS_H
#define AXONNX_VECTORS_H

/* A fused multiply-add would change bits. GCC reads the first pragma, clang and others the second. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__FAST_MATH__)
#error "compile without -ffast-math: every operation must be rounded as it stands"
#endif

/* Wider registers are allowed if every assignment rounds (ISO C): exact sums stay exact, and one float32 operation
   that is rounded twice has the same bits as one that is rounded once. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && !defined(__STRICT_ANSI__)
#error "compile with -std=c99: here float operations are rounded only where the standard is followed"
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(CORE_PLAIN)
#define CORE_PLAIN
#endif

#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define UNROLL(n) _Pragma(UNROLL_(GCC unroll n))
#define UNROLL_(text) #text
#define RARE(condition) __builtin_expect(!!(condition), 0)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define INLINE static inline
#define NOINLINE static
#define UNROLL(n)
#define RARE(condition) (condition)
#define PREFETCH(address)
#endif

typedef uint32_t mask; /* one bit for each lane */

/* What memory holds. In a network of integers all of it is whole: CORE_WHOLE computes without floats, on one lane, with
   the same numbers. */
#ifdef CORE_WHOLE
typedef int32_t scalar;
#define MEAN_OF(count) 0 /* a mean is no whole number; such networks are compiled with floats */
INLINE scalar unit_of(int32_t s) { return (int32_t)1 << -s; }
#else
typedef float scalar;
#define MEAN_OF(count) ((float)(1.0 / (double)(count)))

/* 2^−s */
INLINE float unit_of(int32_t s)
{
    const uint32_t bits = (uint32_t)(127 - s) << 23;
    float unit;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
}
#endif

#ifdef CORE_PLAIN
/* ---------------------------------------------------------------- one lane */
#define LANES 1
#define MOST_VECTORS 8 /* sums that stay in registers */
#undef PREFETCH /* what has one lane has no such cache */
#define PREFETCH(address) ((void)(address))
#define IN_REGISTER(vector)
#define AS_IT_IS(pointer)

typedef scalar vec;
typedef int32_t ivec;

INLINE vec load(const scalar *at) { return *at; }
INLINE void store(scalar *at, vec value) { *at = value; }
INLINE vec splat(scalar value) { return value; }
INLINE ivec isplat(int32_t value) { return value; }
INLINE ivec load_shorts(const int16_t *at) { return *at; }
INLINE ivec load_small(const int8_t *at) { return *at; }
INLINE vec floats(ivec number) { return (scalar)number; }
INLINE ivec whole_of(vec x) { return (int32_t)x; }
INLINE ivec smaller_whole(ivec a, ivec b) { return a < b ? a : b; }
INLINE ivec larger_whole(ivec a, ivec b) { return a < b ? b : a; }
INLINE mask at_least_whole(ivec a, ivec b) { return a >= b; }
INLINE ivec shifted(ivec multiple, ivec power) { return multiple / power; } /* of two */
INLINE vec magnitude(vec x) { return x <= 0 ? 0 - x : x; }
INLINE vec larger(vec a, vec b) { return b > a ? b : a; }
INLINE mask at_least(vec a, vec b) { return a >= b; }
INLINE mask not_zero(vec x) { return x != 0; }
INLINE ivec not_plain(vec x) { return x != 0 && x != 1; }
INLINE int any(ivec number) { return number != 0; }
INLINE mask not_whole(vec x, scalar most) { return !(x >= -most && x <= most) || (scalar)(int32_t)x != x; }
INLINE vec numbers_of(mask bits) { return (scalar)bits; }
INLINE vec add_product(vec sum, scalar x, vec w) { return sum + x * w; }
INLINE int32_t append(int32_t *list, int32_t count, mask bits, int32_t base)
{
    if (bits) list[count] = base;
    return count + (int32_t)bits;
}

#ifdef FOR_TRAINING
#include <math.h>
INLINE ivec bits_in(vec x)
{
    ivec bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE vec from_bits(ivec bits)
{
    vec x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
INLINE ivec shift_down(ivec x, int by) { return (int32_t)((uint32_t)x >> by); }
INLINE ivec shift_up(ivec x, int by) { return (int32_t)((uint32_t)x << by); }
INLINE ivec times(ivec x, uint32_t by) { return (int32_t)((uint32_t)x * by); }
INLINE ivec plus(ivec x, uint32_t by) { return (int32_t)((uint32_t)x + by); }
INLINE ivec lanes_from(uint32_t base) { return (int32_t)base; }
INLINE vec pick(mask chosen, vec a, vec b) { return chosen ? a : b; }
INLINE ivec from_mask(mask chosen, ivec a, ivec b) { return chosen ? a : b; }
INLINE mask greater(vec a, vec b) { return a > b; }
INLINE vec load_some(const float *at, int lanes) { return lanes > 0 ? *at : 0.0f; }
INLINE void store_some(float *at, vec value, int lanes) { if (lanes > 0) *at = value; }
INLINE vec multiply_add(vec a, vec b, vec c) { return a * b + c; }
INLINE vec reciprocal(vec x) { return 1.0f / x; }
INLINE vec root(vec x) { return sqrtf(x); }
INLINE vec one_by_root(vec x) { return 1.0f / sqrtf(x); }
INLINE float total_of(vec x) { return x; }
#endif

#else
/* ---------------------------------------------------------------- sixteen lanes */
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif
#define LANES 16
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VNNI__)
#define HAS_AVX512 1
#define MOST_VECTORS 16
#else
#define HAS_AVX512 0
#define MOST_VECTORS 4
#endif

/* Makes the compiler load a vector once, not again for every use. */
#if HAS_AVX512
#define IN_REGISTER(vector) __asm__("" : "+v"(vector))
#else
#define IN_REGISTER(vector)
#endif
/* Hides a pointer's origin from the compiler, so that constant offsets stay in the addresses of instructions. */
#define AS_IT_IS(pointer) __asm__("" : "+r"(pointer))

typedef float vec __attribute__((vector_size(64)));
typedef int32_t ivec __attribute__((vector_size(64)));
typedef int16_t short16 __attribute__((vector_size(32)));
typedef int16_t short32 __attribute__((vector_size(64)));
typedef int8_t byte16 __attribute__((vector_size(16)));
typedef int8_t byte32 __attribute__((vector_size(32)));

INLINE vec load(const float *at)
{
    vec found;
    memcpy(&found, at, sizeof found);
    return found;
}

INLINE void store(float *at, vec values)
{
    memcpy(at, &values, sizeof values);
}

INLINE vec splat(float value)
{
    const float v = value;
    return (vec){v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
}

INLINE ivec isplat(int32_t value)
{
    return value - (ivec){0};
}

/* Widens small integers; without the intrinsic, compilers do it in halves. */
INLINE ivec widen_shorts(short16 numbers)
{
#if HAS_AVX512
    return (ivec)_mm512_cvtepi16_epi32((__m256i)numbers);
#else
    return __builtin_convertvector(numbers, ivec);
#endif
}

INLINE ivec load_shorts(const int16_t *at)
{
    short16 found;
    memcpy(&found, at, sizeof found);
    return widen_shorts(found);
}

/* Loads sixteen bytes as 32 bits each. */
INLINE ivec load_small(const int8_t *at)
{
    byte16 found;
    memcpy(&found, at, sizeof found);
#if HAS_AVX512
    return (ivec)_mm512_cvtepi8_epi32((__m128i)found);
#else
    return __builtin_convertvector(found, ivec);
#endif
}

INLINE short32 load_bytes(const int8_t *at) /* loads thirty-two */
{
    byte32 found;
    memcpy(&found, at, sizeof found);
#if HAS_AVX512
    return (short32)_mm512_cvtepi8_epi16((__m256i)found);
#else
    return __builtin_convertvector(found, short32);
#endif
}

/* Returns the lower or the upper sixteen. */
INLINE ivec half(short32 numbers, int upper)
{
    short16 halves[2];
    memcpy(halves, &numbers, sizeof halves);
    return widen_shorts(halves[upper]);
}

INLINE vec floats(ivec numbers)
{
#if HAS_AVX512
    return (vec)_mm512_cvtepi32_ps((__m512i)numbers);
#else
    return __builtin_convertvector(numbers, vec);
#endif
}

/* Store sixteen small integers as 16 or as 8 bits. */
INLINE void store_shorts(int16_t *at, vec numbers)
{
#if HAS_AVX512
    _mm256_storeu_si256((__m256i *)(void *)at, _mm512_cvtepi32_epi16(_mm512_cvttps_epi32((__m512)numbers)));
#else
    const short16 found = __builtin_convertvector(__builtin_convertvector(numbers, ivec), short16);
    memcpy(at, &found, sizeof found);
#endif
}

INLINE void store_bytes(int8_t *at, vec numbers)
{
#if HAS_AVX512
    _mm_storeu_si128((__m128i *)(void *)at, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32((__m512)numbers)));
#else
    for (int lane = 0; lane < LANES; lane++) at[lane] = (int8_t)numbers[lane];
#endif
}

INLINE vec where(ivec chosen, vec values) /* 0 elsewhere */
{
    return (vec)(chosen & (ivec)values);
}

INLINE vec magnitude(vec values)
{
    return (vec)((ivec)values & 0x7fffffff);
}

INLINE vec larger(vec a, vec b)
{
    return where(b > a, b) + where(b <= a, a);
}

/* Returns one bit for each selected lane (all ones, or zero). */
INLINE mask bits_of(ivec chosen)
{
#if HAS_AVX512
    return _mm512_test_epi32_mask((__m512i)chosen, (__m512i)chosen);
#elif defined(__AVX2__)
    __m256 parts[2];
    memcpy(parts, &chosen, sizeof parts);
    return (mask)_mm256_movemask_ps(parts[0]) | (mask)_mm256_movemask_ps(parts[1]) << 8;
#elif defined(__SSE2__)
    __m128 parts[4];
    mask bits = 0;
    memcpy(parts, &chosen, sizeof parts);
    for (int part = 0; part < 4; part++) bits |= (mask)_mm_movemask_ps(parts[part]) << 4 * part;
    return bits;
#else
    const ivec lanes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    const ivec kept = chosen & lanes;
    mask bits = 0;
    for (int lane = 0; lane < LANES; lane++) bits |= (mask)kept[lane];
    return bits;
#endif
}

/* Returns one bit for each lane where a comparison holds; without mask instructions it goes through a vector of
   bits. */
#if HAS_AVX512
#define COMPARED(a, comparison, b, code) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), code)
#else
#define COMPARED(a, comparison, b, code) bits_of((a) comparison (b))
#endif

INLINE mask at_least(vec a, vec b)
{
    return COMPARED(a, >=, b, _CMP_GE_OQ);
}

/* Integers: conversions of whole numbers, and what the language has no operator for. */
INLINE ivec whole_of(vec numbers)
{
#if HAS_AVX512
    return (ivec)_mm512_cvttps_epi32((__m512)numbers);
#else
    return __builtin_convertvector(numbers, ivec);
#endif
}

INLINE ivec smaller_whole(ivec a, ivec b)
{
    const ivec first = a < b;
    return (a & first) | (b & ~first);
}

INLINE ivec larger_whole(ivec a, ivec b)
{
    const ivec second = a < b;
    return (b & second) | (a & ~second);
}

INLINE mask at_least_whole(ivec a, ivec b)
{
    return bits_of(a >= b);
}

INLINE ivec shifted(ivec multiple, ivec power) /* divides a multiple of a power of two by it */
{
    return multiple >> (((ivec)floats(power) >> 23) - 127); /* the exponent of a float */
}

INLINE mask not_zero(vec values)
{
    return COMPARED(values, !=, (vec){0}, _CMP_NEQ_UQ);
}

/* Returns non-zero for numbers that are neither 0 nor 1, and for −0, which a later check accepts. */
INLINE ivec not_plain(vec values)
{
    const ivec bits = (ivec)values, one = isplat(0x3f800000);
#if HAS_AVX512
    const __mmask16 there = _mm512_test_epi32_mask((__m512i)bits, (__m512i)bits);
    return (ivec)_mm512_maskz_xor_epi32(there, (__m512i)bits, (__m512i)one);
#else
    return (bits ^ one) & (bits != 0);
#endif
}

INLINE int any(ivec numbers)
{
    return bits_of(numbers != 0) != 0;
}

/* Returns one bit for each lane that is not an integer between −most and most. Values far outside and NaN become
   some other integer, so they differ too. */
INLINE mask not_whole(vec values, float most)
{
    const vec bounded = where(values >= splat(-most), where(values <= splat(most), values));
    const vec whole = __builtin_convertvector(__builtin_convertvector(bounded, ivec), vec);
    return COMPARED(whole, !=, values, _CMP_NEQ_UQ);
}

/* Returns 1 for each set bit, 0 for the others. */
INLINE vec numbers_of(mask bits)
{
#if HAS_AVX512
    return (vec)_mm512_maskz_mov_ps((__mmask16)bits, _mm512_set1_ps(1.0f));
#else
    const ivec lanes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    return where((lanes & (int32_t)bits) != 0, splat(1.0f));
#endif
}

/* Returns sum + x·w, where product and sum are exact, so fusing does not change the bits. */
INLINE vec add_product(vec sum, float x, vec w)
{
#if HAS_AVX512
    return (vec)_mm512_fmadd_ps(_mm512_set1_ps(x), (__m512)w, (__m512)sum);
#else
    return sum + splat(x) * w;
#endif
}

/* Appends base + lane for each set bit to the list and returns the new count. It may write sixteen numbers. */
INLINE int32_t append(int32_t *list, int32_t count, mask bits, int32_t base)
{
#if HAS_AVX512
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32(base));
    const __m512i chosen = _mm512_maskz_compress_epi32((__mmask16)bits, places);
    const int32_t more = __builtin_popcount(bits);
    /* Lists begin at any address, so most whole vectors would cross a cache line; few events fit into half a vector. */
    if (more <= 8) _mm256_storeu_si256((__m256i *)(void *)(list + count), _mm512_castsi512_si256(chosen));
    else _mm512_storeu_si512(list + count, chosen);
    return count + more;
#else
    for (; bits != 0; bits &= bits - 1) list[count++] = base + __builtin_ctz(bits);
    return count;
#endif
}

#ifdef FOR_TRAINING
/* ---------------------------------------------------------------- what training needs more
   Unsigned arithmetic on the lanes of an ivec, choices, roots and reciprocals. `multiply_add` and the last three differ
   between instruction sets in their last bits: they are for gradients and sums of the regulariser. */
typedef uint32_t uvec __attribute__((vector_size(64)));

INLINE ivec bits_in(vec x) { return (ivec)x; }
INLINE vec from_bits(ivec bits) { return (vec)bits; }
INLINE ivec shift_down(ivec x, int by) { return (ivec)((uvec)x >> by); }
INLINE ivec shift_up(ivec x, int by) { return (ivec)((uvec)x << by); }
INLINE ivec times(ivec x, uint32_t by) { return (ivec)((uvec)x * by); }
INLINE ivec plus(ivec x, uint32_t by) { return (ivec)((uvec)x + by); }
INLINE ivec lanes_from(uint32_t base)
{
    return (ivec)((uvec){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + base);
}

/* a where a bit is set, b elsewhere */
INLINE vec pick(mask chosen, vec a, vec b)
{
#if HAS_AVX512
    return (vec)_mm512_mask_mov_ps((__m512)b, (__mmask16)chosen, (__m512)a);
#else
    const ivec lanes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    const ivec all = (lanes & (int32_t)chosen) != 0;
    return (vec)((all & (ivec)a) | (~all & (ivec)b));
#endif
}

INLINE ivec from_mask(mask chosen, ivec a, ivec b)
{
    return (ivec)pick(chosen, (vec)a, (vec)b);
}

INLINE mask greater(vec a, vec b)
{
    return COMPARED(a, >, b, _CMP_GT_OQ);
}

/* The first `lanes`; zero in the others. */
INLINE vec load_some(const float *at, int lanes)
{
    if (lanes >= LANES) return load(at);
#if HAS_AVX512
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << lanes) - 1), at);
#else
    vec found = {0};
    memcpy(&found, at, (size_t)lanes * sizeof *at);
    return found;
#endif
}

INLINE void store_some(float *at, vec values, int lanes)
{
    if (lanes >= LANES) store(at, values);
#if HAS_AVX512 /* a call of memcpy would move every vector out of its register */
    else _mm512_mask_storeu_ps(at, (__mmask16)((1u << lanes) - 1), (__m512)values);
#else
    else memcpy(at, &values, (size_t)lanes * sizeof *at);
#endif
}

INLINE vec multiply_add(vec a, vec b, vec c)
{
#if HAS_AVX512
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return a * b + c;
#endif
}

INLINE vec reciprocal(vec x)
{
#if HAS_AVX512
    const vec near = (vec)_mm512_rcp14_ps((__m512)x);
    return near * (vec)_mm512_fnmadd_ps((__m512)x, (__m512)near, _mm512_set1_ps(2.0f));
#else
    return splat(1.0f) / x;
#endif
}

/* 1/√x of normal numbers: a guess from the exponent or the processor's, then Newton's steps. */
INLINE vec one_by_root(vec x)
{
#if HAS_AVX512
    vec y = (vec)_mm512_rsqrt14_ps((__m512)x);
    const int steps = 1;
#else
    vec y = (vec)(isplat(0x5f375a86) - shift_down((ivec)x, 1));
    const int steps = 3;
#endif
    const vec half = x * splat(0.5f);
    for (int step = 0; step < steps; step++) y = y * (splat(1.5f) - half * y * y);
    return y;
}

INLINE vec root(vec x)
{
    return x * one_by_root(larger(x, splat(1e-30f)));
}

INLINE float total_of(vec x)
{
#if HAS_AVX512
    return _mm512_reduce_add_ps((__m512)x);
#else
    float sums[LANES];
    store(sums, x);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
    return sums[0];
#endif
}
#endif

/* ---------------------------------------------------------------- products of small integers, for dense layers

   They compute sum_l + w_2l x_0 + w_2l+1 x_1 for a pair of inputs and sixteen outputs. */
#if HAS_AVX512
#define HAS_PAIRS 1
#define HAS_QUADS 1
typedef __m512i sums16;
INLINE sums16 no_sums(void) { return _mm512_setzero_si512(); }
INLINE ivec sums_of(sums16 sums) { return (ivec)sums; }
typedef __m512i weights16;
INLINE weights16 load_weights(const int8_t *at)
{
    return _mm512_loadu_si512(at);
}
/* In assembly, because GCC copies a sum before it adds to it and then runs out of registers. */
INLINE void add_pairs(sums16 *sums, weights16 w, int32_t pair)
{
    __asm__("vpdpwssd\t{%2, %1, %0|%0, %1, %2}" : "+v"(*sums) : "v"(_mm512_set1_epi32(pair)), "v"(w));
}
/* Multiplies four unsigned inputs with signed weights. */
INLINE void add_quads(sums16 *sums, weights16 w, int32_t quad)
{
    __asm__("vpdpbusd\t{%2, %1, %0|%0, %1, %2}" : "+v"(*sums) : "v"(_mm512_set1_epi32(quad)), "v"(w));
}
/* Thirty-two integers of 16 bits added to two sums of 32 bits each: one has those at even places, the other those at odd
   ones. A product with 1 or 0 widens and adds in one instruction, where widening by itself takes another. */
#define HAS_PLACES 1
INLINE void add_places(sums16 *even, sums16 *odd, const int16_t *at)
{
    const __m512i some = _mm512_loadu_si512(at), low = _mm512_set1_epi32(1), high = _mm512_set1_epi32(1 << 16);
    __asm__("vpdpwssd\t{%2, %1, %0|%0, %1, %2}" : "+v"(*even) : "v"(low), "v"(some));
    __asm__("vpdpwssd\t{%2, %1, %0|%0, %1, %2}" : "+v"(*odd) : "v"(high), "v"(some));
}
/* The lower or the upper sixteen of such sums, in order. */
INLINE ivec half_of_places(sums16 even, sums16 odd, int upper)
{
    const __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return (ivec)_mm512_permutex2var_epi32(even, _mm512_add_epi32(lower, _mm512_set1_epi32(8 * upper)), odd);
}
#elif defined(__AVX2__)
#define HAS_PAIRS 1
typedef struct {
    __m256i low, high;
} sums16;
INLINE sums16 no_sums(void)
{
    return (sums16){_mm256_setzero_si256(), _mm256_setzero_si256()};
}
INLINE ivec sums_of(sums16 sums)
{
    ivec found;
    memcpy(&found, &sums, sizeof found);
    return found;
}
typedef sums16 weights16;
INLINE weights16 load_weights(const int8_t *at)
{
    const __m256i *from = (const __m256i *)(const void *)at;
    return (weights16){_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}
INLINE void add_pairs(sums16 *sums, weights16 w, int32_t pair)
{
    const __m256i x = _mm256_set1_epi32(pair);
    sums->low = _mm256_add_epi32(sums->low, _mm256_madd_epi16(w.low, x));
    sums->high = _mm256_add_epi32(sums->high, _mm256_madd_epi16(w.high, x));
}
#endif
#endif /* lanes */

#ifndef HAS_PAIRS
#define HAS_PAIRS 0
#endif
#ifndef HAS_QUADS
#define HAS_QUADS 0
#endif
#ifndef HAS_PLACES
#define HAS_PLACES 0
#endif
#ifdef FOR_TRAINING
/* Float16, rounded to the nearest, ties to even; a finite number beyond the largest becomes the largest. By integers, so
   that every instruction set has the same bits; by the processor's own instruction where there is one. */
INLINE void store_halves(uint16_t *at, vec x, int lanes)
{
#if HAS_AVX512
    const __m512 most = _mm512_set1_ps(65504.0f), least = _mm512_set1_ps(-65504.0f);
    const __m512 near = _mm512_max_ps(least, _mm512_min_ps(most, (__m512)x));
    const __mmask16 infinite = _mm512_cmp_ps_mask((__m512)magnitude(x), _mm512_set1_ps(__builtin_inff()), _CMP_EQ_OQ);
    const __m512 kept = _mm512_mask_mov_ps(near, infinite, (__m512)x); /* whoever looks for them must find them */
    const __m256i found = _mm512_cvtps_ph(kept, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (lanes >= LANES) _mm256_storeu_si256((__m256i *)(void *)at, found);
    else _mm256_mask_storeu_epi16(at, (__mmask16)((1u << lanes) - 1), found);
#else
    const ivec bits = bits_in(x), sign = shift_down(bits, 16) & 0x8000, size = bits & 0x7fffffff;
    const ivec capped = from_mask(greater(from_bits(size), splat(65504.0f)), isplat(0x477fe000), size);
    const ivec usual = shift_down(plus(capped, 0xc8000fffu) + (shift_down(capped, 13) & 1), 13);
    const ivec tiny = bits_in(from_bits(capped) + splat(0.5f)) - 0x3f000000;
    ivec found = from_mask(at_least(from_bits(capped), splat(6.103515625e-5f)), usual, tiny);
    found = from_mask(at_least(from_bits(size), from_bits(isplat(0x7f800000))), isplat(0x7c00), found);
    found = from_mask(at_least(from_bits(size), splat(0.0f)), found, isplat(0x7e00)) | sign;
    int32_t each[LANES];
    memcpy(each, &found, sizeof each);
    for (int lane = 0; lane < LANES && lane < lanes; lane++) at[lane] = (uint16_t)each[lane];
#endif
}

INLINE vec load_halves(const uint16_t *at, int lanes)
{
#if HAS_AVX512
    if (lanes >= LANES) return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)at));
    return (vec)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)((1u << lanes) - 1), at));
#else
    uint16_t each[LANES] = {0};
    memcpy(each, at, (size_t)(lanes < LANES ? lanes : LANES) * sizeof *at);
    int32_t wide[LANES];
    ivec bits;
    for (int lane = 0; lane < LANES; lane++) wide[lane] = each[lane];
    memcpy(&bits, wide, sizeof bits);
    const vec size = from_bits(shift_up(bits & 0x7fff, 13)) * splat(5.192296858534828e33f);
    const ivec broken = from_mask(at_least(size, splat(65536.0f)), isplat(0x7f800000), isplat(0)) |
                        from_mask(greater(size, splat(65536.0f)), isplat(0x00400000), isplat(0));
    return from_bits(bits_in(size) | shift_up(bits & 0x8000, 16) | broken);
#endif
}
#endif
#endif
