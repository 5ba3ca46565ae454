/* Standard normals [steps, samples, count], by the generator of generated networks. */
void axonnx_normals(float *out, int64_t steps, int64_t samples, int64_t count, uint64_t seed, const uint64_t *names,
                    uint64_t first_step, uint32_t layer)
{
    for (int64_t t = 0; t < steps; t++)
        for (int64_t s = 0; s < samples; s++, out += count)
            normals(out, (int)count, seed, layer, (uint32_t)(first_step + (uint64_t)t), (uint32_t)names[s]);
}
