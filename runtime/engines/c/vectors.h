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
typedef int16_t short16 __attribute__((vector_size(32)));
typedef int16_t short32 __attribute__((vector_size(64)));
typedef int8_t byte32 __attribute__((vector_size(32)));

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

/* Small integers, widened; compilers do it in halves unless they are told. */
INLINE i16 widen_shorts(short16 numbers)
{
#ifdef __AVX512F__
    return (i16)_mm512_cvtepi16_epi32((__m256i)numbers);
#else
    return __builtin_convertvector(numbers, i16);
#endif
}

INLINE short32 widen_bytes(byte32 numbers)
{
#ifdef __AVX512BW__
    return (short32)_mm512_cvtepi8_epi16((__m256i)numbers);
#else
    return __builtin_convertvector(numbers, short32);
#endif
}

INLINE i16 load_shorts(const int16_t *at) /* sixteen */
{
    short16 found;
    memcpy(&found, at, sizeof found);
    return widen_shorts(found);
}

INLINE short32 load_bytes(const int8_t *at) /* thirty-two */
{
    byte32 found;
    memcpy(&found, at, sizeof found);
    return widen_bytes(found);
}

/* The lower or the upper sixteen. */
INLINE i16 half(short32 numbers, int upper)
{
    short16 halves[2];
    memcpy(halves, &numbers, sizeof halves);
    return widen_shorts(halves[upper]);
}

INLINE v16 floats(i16 numbers)
{
#ifdef __AVX512F__
    return (v16)_mm512_cvtepi32_ps((__m512i)numbers);
#else
    return __builtin_convertvector(numbers, v16);
#endif
}

/* 2^−s */
INLINE float unit_of(int64_t s)
{
    const uint32_t bits = (uint32_t)(127 - s) << 23;
    float unit;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
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

/* A bit for each lane where a comparison holds; by way of a vector of ones and zeros unless the processor has masks. */
#ifdef __AVX512F__
#define COMPARED(a, comparison, b, code) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), code)
#else
#define COMPARED(a, comparison, b, code) bits_of((a) comparison (b))
#endif

INLINE uint32_t at_least(v16 a, v16 b)
{
    return COMPARED(a, >=, b, _CMP_GE_OQ);
}

INLINE uint32_t not_zero(v16 values)
{
    return COMPARED(values, !=, (v16){0}, _CMP_NEQ_UQ);
}

INLINE uint32_t ones(v16 values)
{
    return COMPARED(values, ==, splat(1.0f), _CMP_EQ_OQ);
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
