/* Synapses. Weights are multiples of unit, a power of two, and every partial sum is exact in float32, so the order of
   additions cannot show: an input that is zero is left out, every other adds its row of weights. */

/* y = W·x + b; rows[i·outputs + j] is w_ji in units */
static void linear_WEIGHT(float *y, int outputs, const float *x, int inputs, const WEIGHT *rows, float unit,
                          const float *bias)
{
    for (int j = 0; j < outputs; j++) y[j] = bias ? bias[j] : 0.0f;
    for (int i = 0; i < inputs; i++) {
        if (x[i] == 0.0f) continue;
        const float value = x[i] * unit;
        const WEIGHT *row = rows + (int64_t)i * outputs;
        for (int j = 0; j < outputs; j++) y[j] += value * (float)row[j];
    }
}

/* One input at (row, column), padding included, adds its weights [tall][wide][outputs] to all outputs it reaches. */
static void spread_WEIGHT(float *y, float value, int row, int column, const WEIGHT *weights, const geometry *g)
{
    const int area = g->out_height * g->out_width;
    for (int ky = 0; ky < g->tall; ky++) {
        const int down = row - ky * g->dilation_y;
        if (down < 0 || down % g->stride_y != 0 || down / g->stride_y >= g->out_height) continue;
        for (int kx = 0; kx < g->wide; kx++) {
            const int across = column - kx * g->dilation_x;
            if (across < 0 || across % g->stride_x != 0 || across / g->stride_x >= g->out_width) continue;
            float *to = y + down / g->stride_y * g->out_width + across / g->stride_x;
            const WEIGHT *from = weights + (ky * g->wide + kx) * g->outputs;
            for (int o = 0; o < g->outputs; o++) to[o * area] += value * (float)from[o];
        }
    }
}

/* y = W ∗ x + b; a group's inputs reach its own outputs alone */
static void conv_WEIGHT(float *y, const float *x, const WEIGHT *weights, float unit, const float *bias,
                        const geometry *g)
{
    const int area = g->out_height * g->out_width, window = g->tall * g->wide * g->outputs;
    for (int o = 0; o < g->groups * g->outputs; o++)
        for (int p = 0; p < area; p++) y[o * area + p] = bias ? bias[o] : 0.0f;
    for (int c = 0; c < g->groups * g->inputs; c++)
        for (int row = 0; row < g->height; row++)
            for (int column = 0; column < g->width; column++, x++)
                if (*x != 0.0f)
                    spread_WEIGHT(y + c / g->inputs * g->outputs * area, *x * unit, row + g->top, column + g->left,
                                  weights + (int64_t)c * window, g);
}
