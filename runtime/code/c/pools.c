/* a_i = Σ_k x_k² − x_i², exact: x is spikes or counts */
static void recurrent_activity(float *y, const float *x, int size)
{
    float sum = 0.0f;
    for (int i = 0; i < size; i++) sum += x[i] * x[i];
    for (int i = 0; i < size; i++) y[i] = sum - x[i] * x[i];
}

/* ((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order; rows and columns are the result's, of all channels */
static void pool_pairs(float *y, const float *x, int rows, int columns)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            const float *top = x + 4 * r * columns + 2 * c, *under = top + 2 * columns;
            y[r * columns + c] = ((top[0] + top[1]) + (under[0] + under[1])) * 0.25f;
        }
}

/* Means over windows of a power of two: exact, for x lies on a grid. */
static void average_pool(float *y, const float *x, int rows, int columns, int tall, int wide)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float sum = 0.0f;
            for (int i = 0; i < tall; i++)
                for (int j = 0; j < wide; j++) sum += x[((r * tall + i) * columns + c) * wide + j];
            y[r * columns + c] = sum * (1.0f / (float)(tall * wide));
        }
}

/* The largest of each window. */
static void max_pool(float *y, const float *x, int rows, int columns, int tall, int wide)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            float largest = x[r * tall * columns * wide + c * wide];
            for (int i = 0; i < tall; i++)
                for (int j = 0; j < wide; j++) {
                    const float value = x[((r * tall + i) * columns + c) * wide + j];
                    if (value > largest) largest = value;
                }
            y[r * columns + c] = largest;
        }
}
