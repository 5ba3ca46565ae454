/* Standard normal numbers that depend only on (seed, sample, step, layer, neuron): Philox-4x32-10, then a piecewise
   polynomial in double, whose coefficients are in `table` [octave][power]. */
#ifndef AXONNX_NOISE_H
#define AXONNX_NOISE_H
#include <stdint.h>

/* The top bit is the sign; the others give the tail probability (2m + 1) / 2³³. */
static float normal(uint32_t word, const double (*table)[8])
{
    const uint32_t odd = (word & 0x7fffffffu) * 2u + 1u;
#ifdef __GNUC__
    const int octave = 32 - __builtin_clz(odd); /* a loop would be guessed wrong for every other number */
#else
    int octave = 32;
    while (odd >> (octave - 1) == 0u) octave--;
#endif
    const double v = (double)odd / (double)((uint64_t)1 << octave) * 4.0 - 3.0, *row = table[octave - 1];
    double value = row[7];
    for (int power = 6; power >= 0; power--) {
        const double product = value * v;
        value = product + row[power];
    }
    return (float)(word >> 31 ? -value : value);
}

/* One of the ten turns of a counter of four words; k and l are the two words of the key in this turn. */
static inline void philox_turn(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, uint32_t k, uint32_t l)
{
    const uint64_t first = (uint64_t)*a * 0xd2511f53u, second = (uint64_t)*c * 0xcd9e8d57u;
    *a = (uint32_t)(second >> 32) ^ *b ^ k;
    *b = (uint32_t)second;
    *c = (uint32_t)(first >> 32) ^ *d ^ l;
    *d = (uint32_t)first;
}

/* Draws the numbers of one layer, sample and step. */
static void normals(float *y, int32_t size, uint64_t seed, uint32_t layer, uint32_t step, uint32_t sample,
                    const double (*table)[8])
{
    for (int32_t begin = 0; begin < size; begin += 4) {
        uint32_t words[4] = {(uint32_t)begin / 4, layer, step, sample}, k = (uint32_t)seed, l = (uint32_t)(seed >> 32);
        for (int turn = 0; turn < 10; turn++, k += 0x9e3779b9u, l += 0xbb67ae85u)
            philox_turn(words, words + 1, words + 2, words + 3, k, l);
        for (int32_t n = 0; n < 4 && begin + n < size; n++) y[begin + n] = normal(words[n], table);
    }
}
#endif
