/* A count of a frame whose counts add up to `sum`, scaled so that they add up to about NETWORK_SCALED_TO. */
static network_value scaled_count(network_value count, int64_t sum)
{
    if (count == 0) return 0;
    const int64_t found = (2 * (int64_t)count * NETWORK_SCALED_TO + sum) / (2 * sum);
    return (network_value)(found < 255 ? found : 255);
}
