/* Sixteen floats at a time, and masks of them. The compiler makes of a vector what the processor has: one register of
   AVX-512, two of AVX, four of SSE or NEON. */
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#define LANES 16
#define INLINE static inline __attribute__((always_inline))

/* A pointer that the compiler takes as it is: constants added to it stay in the addresses of instructions. */
#define AS_IT_IS(pointer) __asm__("" : "+r"(pointer))

/* A vector that is read once, not again for every use. */
#ifdef __AVX512F__
#define IN_REGISTER(vector) __asm__("" : "+v"(vector))
#else
#define IN_REGISTER(vector)
#endif

typedef float v16 __attribute__((vector_size(64)));
typedef int32_t i16 __attribute__((vector_size(64)));

/* The widest block of outputs whose sums stay in registers. */
#ifdef __AVX512F__
#define WIDEST 256
#else
#define WIDEST 64
#endif

INLINE v16 load(const float *at)
{
    v16 found;
    memcpy(&found, at, sizeof found);
    return found;
}

INLINE void store(float *at, v16 values)
{
    memcpy(at, &values, sizeof values);
}

INLINE v16 splat(float value)
{
    return value - (v16){0};
}

INLINE v16 where(i16 chosen, v16 values) /* 0 elsewhere */
{
    return (v16)(chosen & (i16)values);
}

INLINE v16 magnitude(v16 values)
{
    return (v16)((i16)values & 0x7fffffff);
}

/* A bit for each lane that is chosen (all ones, or zero). */
INLINE uint32_t bits_of(i16 chosen)
{
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)chosen, (__m512i)chosen);
#elif defined(__AVX__)
    __m256 parts[2];
    memcpy(parts, &chosen, sizeof parts);
    return (uint32_t)_mm256_movemask_ps(parts[0]) | (uint32_t)_mm256_movemask_ps(parts[1]) << 8;
#elif defined(__SSE2__)
    __m128 parts[4];
    uint32_t bits = 0;
    memcpy(parts, &chosen, sizeof parts);
    for (int part = 0; part < 4; part++) bits |= (uint32_t)_mm_movemask_ps(parts[part]) << 4 * part;
    return bits;
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < LANES; lane++) bits |= (uint32_t)(chosen[lane] != 0) << lane;
    return bits;
#endif
}

/* sum + x·w, where product and sum are exact: fused or not, the bits are the same. */
INLINE v16 add_product(v16 sum, float x, v16 w)
{
#if defined(__AVX512F__)
    return (v16)_mm512_fmadd_ps(_mm512_set1_ps(x), (__m512)w, (__m512)sum);
#else
    return sum + x * w;
#endif
}
