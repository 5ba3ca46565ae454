/* Standard normal numbers that depend only on (seed, sample, step, layer, neuron): Philox-4x32-10, then a piecewise
   polynomial in double, whose coefficients are in `table` [octave][power]. */
#ifndef AXONNX_NOISE_H
#define AXONNX_NOISE_H
#include <stdint.h>

/* The top bit is the sign; the others give the tail probability (2m + 1) / 2³³. */
static float normal(uint32_t word, const double (*table)[8])
{
    const uint32_t odd = (word & 0x7fffffffu) * 2u + 1u;
    int octave = 32;
    while (odd >> (octave - 1) == 0u) octave--;
    const double v = (double)odd / (double)((uint64_t)1 << octave) * 4.0 - 3.0, *row = table[octave - 1];
    double value = row[7];
    for (int power = 6; power >= 0; power--) {
        const double product = value * v;
        value = product + row[power];
    }
    return (float)(word >> 31 ? -value : value);
}

/* Draws the numbers of one layer, sample and step. */
static void normals(float *y, int32_t size, uint64_t seed, uint32_t layer, uint32_t step, uint32_t sample,
                    const double (*table)[8])
{
    for (int32_t begin = 0; begin < size; begin += 4) {
        uint32_t words[4] = {(uint32_t)begin / 4, layer, step, sample}, k = (uint32_t)seed, l = (uint32_t)(seed >> 32);
        for (int turn = 0; turn < 10; turn++) {
            const uint64_t first = (uint64_t)words[0] * 0xd2511f53u, second = (uint64_t)words[2] * 0xcd9e8d57u;
            const uint32_t b = words[1], d = words[3];
            words[0] = (uint32_t)(second >> 32) ^ b ^ k;
            words[1] = (uint32_t)second;
            words[2] = (uint32_t)(first >> 32) ^ d ^ l;
            words[3] = (uint32_t)first;
            k += 0x9e3779b9u;
            l += 0xbb67ae85u;
        }
        for (int32_t n = 0; n < 4 && begin + n < size; n++) y[begin + n] = normal(words[n], table);
    }
}
#endif
