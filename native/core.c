/* Functions that do not depend on the instruction set: the sets that this build has and this processor supports, and
   noise. */
#include "vectors.h"
#include "generated.h"
#include "program.h"
#include "noise.h"

/* Names of instruction sets, the best first, separated by spaces. */
EXPORT const char *axonnx_isas(void)
{
#if defined(HAVE_AVX512) || defined(HAVE_AVX2)
    __builtin_cpu_init();
#endif
#ifdef HAVE_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma"))
        return "avx512 avx2 plain";
#endif
#ifdef HAVE_AVX2
    if (__builtin_cpu_supports("avx2")) return "avx2 plain";
#endif
#ifdef HAVE_NEON
    return "neon plain";
#endif
    return "plain";
}

/* The layout of the tables that this build reads. Python makes the tables and refuses a library with another layout. */
EXPORT const char *axonnx_layout(void)
{
    return LAYOUT;
}

/* Standard normal numbers [steps, samples, count]. */
EXPORT void axonnx_normals(float *out, int64_t steps, int64_t samples, int64_t count, uint64_t seed,
                           const uint64_t *names, uint64_t first_step, uint32_t layer, const double (*table)[8])
{
    for (int64_t t = 0; t < steps; t++)
        for (int64_t s = 0; s < samples; s++, out += count)
            normals(out, (int32_t)count, seed, layer, (uint32_t)(first_step + (uint64_t)t), (uint32_t)names[s], table);
}
