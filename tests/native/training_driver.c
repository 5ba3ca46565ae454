/* Training passes on numbers of a fixed sequence: what they give, as bits. Lines with F must be the same everywhere; those
   with G are gradients and sums, whose last bits may differ. */
#include "training.c"
#include <stdio.h>

enum { T = 5, B = 10, C = 37, WIDTH = 48 };
static uint32_t state = 1;

static float *room(int64_t count) { return calloc((size_t)count + 64, sizeof(float)); }

static float *some(int64_t count, float low, float high)
{
    float *found = room(count);
    for (int64_t n = 0; n < count; n++) {
        state = state * 1664525u + 1013904223u;
        found[n] = low + (high - low) * ((float)(state >> 8) * 0x1p-24f);
    }
    return found;
}

static uint16_t *spikes_of(int64_t rows, int64_t channels, float rate, float **numbers)
{
    float *x = some(rows * channels, 0.0f, 1.0f);
    for (int64_t n = 0; n < rows * channels; n++) x[n] = x[n] < rate ? 1.0f : 0.0f;
    uint16_t *bits = calloc((size_t)(rows * (PADDED(channels) / WORD)) + 64, sizeof *bits);
    CORE(pack)(x, bits, calloc((size_t)rows, 1), channels, 0, rows);
    *numbers = x;
    return bits;
}

static void show(char kind, const char *name, const float *x, int64_t count)
{
    printf("%c %s:", kind, name);
    for (int64_t n = 0; n < count; n++) {
        uint32_t bits;
        memcpy(&bits, x + n, sizeof bits);
        printf(" %08lx", (unsigned long)bits);
    }
    printf("\n");
}

static void show_doubles(const char *name, const double *x, int64_t count)
{
    float *singles = room(count);
    for (int64_t n = 0; n < count; n++) singles[n] = (float)x[n];
    show('G', name, singles, count);
}

static void neurons(int64_t pixels, int64_t terms, int recurrent, int64_t estimator, int to_zero)
{
    const int64_t neurons = B * pixels * C, all = T * neurons, words = B * pixels * (WIDTH / WORD);
    float *means = some(C * C, -0.3f, 0.3f), *panels = room(64 * C);
    double *sums = calloc(2 * B, sizeof *sums);
    lif p = {.mean = some(all, -1.0f, 2.0f), .membrane0 = some(neurons, -1.0f, 1.0f), .decay = some(WIDTH, 0.6f, 0.9f),
             .threshold = some(WIDTH, 0.8f, 1.2f), .spikes = room(all), .gap = room(all), .membrane = room(neurons),
             .bits = calloc((size_t)((T + 1) * words) + 64, sizeof(uint16_t)), .steps = T, .batch = B, .pixels = pixels,
             .channels = C, .terms = terms, .to_zero = to_zero, .scale = 1.0f};
    if (estimator != SURROGATE) {
        p.activity = some(T * B * pixels * terms, 0.1f, 1.0f);
        p.gain = some(terms * WIDTH, 0.1f, 1.0f);
        p.variance0 = some(neurons, 0.1f, 1.0f);
        p.variance = room(neurons);
        p.sums = sums;
        p.base = 0.1f;
        p.drawn = 1;
        p.seed = 0x123456789abcdefu;
    }
    if (recurrent) {
        p.weight = some(C * WIDTH, -0.3f, 0.3f);
        p.own = some(WIDTH, 0.0f, 0.1f);
        CORE(panels)(means, C, C, C, 1, panels);
    }
    CORE(lif_forward)(&p, 0, B);
    show('F', "spikes", p.spikes, all);
    show('F', "gap", p.gap, all);
    show('F', "membrane", p.membrane, neurons);
    if (p.variance) show('F', "variance", p.variance, neurons);
    show_doubles("sums", sums, 2 * B);
    lif_grads g = {.of = p, .panels = panels, .by_spikes = some(all, -1.0f, 1.0f), .by_membrane = some(neurons, -1.0f, 1.0f),
                   .h_grads = room(all), .by_decay = calloc(B * WIDTH, sizeof(double)), .estimator = estimator,
                   .by_threshold = calloc(B * WIDTH, sizeof(double)), .first_membrane = room(neurons),
                   .first_spikes = room(neurons), .option = 0.3f};
    if (p.activity) {
        g.by_activity = room(T * B * pixels * terms);
        g.by_gain = room(B * terms * WIDTH);
        g.by_own = recurrent ? calloc(B * WIDTH, sizeof(double)) : NULL;
        g.by_log = 0.1f;
        g.by_quadratic = 0.03f;
    }
    CORE(lif_backward)(&g, 0, B);
    show('G', "h_grads", g.h_grads, all);
    show_doubles("by_decay", g.by_decay, B * WIDTH);
    show_doubles("by_threshold", g.by_threshold, B * WIDTH);
    show('G', "first_membrane", g.first_membrane, neurons);
    show('G', "first_spikes", g.first_spikes, neurons);
    if (g.by_activity) show('G', "by_activity", g.by_activity, T * B * pixels * terms);
    if (g.by_gain) show('G', "by_gain", g.by_gain, B * terms * WIDTH);
    if (g.by_own) show_doubles("by_own", g.by_own, B * WIDTH);
}

static void products(void)
{
    enum { ROWS_OF = 70, OUT = 33 };
    float *x, *weights = some(OUT * C, -1.0f, 1.0f), *panels = room(64 * C), *out = room(ROWS_OF * OUT);
    uint16_t *bits = spikes_of(ROWS_OF, C, 0.3f, &x);
    CORE(panels)(weights, C, OUT, 1, C, panels);
    linear p = {.bits = bits, .panels = panels, .bias = some(OUT, -1.0f, 1.0f), .out = out, .activity = room(ROWS_OF),
                .inputs = C, .outputs = OUT};
    CORE(linear_forward)(&p, 0, ROWS_OF);
    show('F', "by events", out, ROWS_OF * OUT);
    show('F', "activity", p.activity, ROWS_OF);
    dense d = {.x = x, .panels = panels, .bias = p.bias, .out = out, .inputs = C, .outputs = OUT, .x_step = C,
               .out_step = OUT, .exact = 0};
    CORE(dense)(&d, 0, ROWS_OF);
    show('F', "by events", out, ROWS_OF * OUT); /* as the sums by events */
    linear_grads g = {.bits = bits, .grads = out, .weights = room(C * PADDED(OUT)), .rows = ROWS_OF, .inputs = C,
                      .outputs = OUT};
    CORE(linear_backward)(&g, 0, PADDED(C) / WORD);
    show('G', "by_weight", g.weights, C * PADDED(OUT));
}

static void convolution(int64_t stride)
{
    enum { IMAGES = 3, SIDE = 7, IN = 18, OUT = 33 };
    const int64_t side = (SIDE + 2 - 3) / stride + 1, size = side * side * OUT;
    const window k = {IN, SIDE, SIDE, OUT, side, side, 3, 3, stride, stride, 1, 1, 1, 1};
    int64_t sizes[6];
    float *x, *weights = some(OUT * IN * 9, -1.0f, 1.0f), *bias = some(OUT, -1.0f, 1.0f);
    uint16_t *bits = spikes_of(IMAGES * SIDE * SIDE, IN, 0.3f, &x);
    CORE(conv_sizes)(&k, sizes);
    float *packed[2] = {room(sizes[2]), room(sizes[3])}, *back = room(sizes[4]), *memory = room(sizes[0] + sizes[1]);
    CORE(conv_pack)(&k, weights, packed[0], packed[1], NULL);
    CORE(conv_pack_backward)(&k, weights, back);
    for (int64_t by = 0; by < 2; by++) { /* events, then dense products: the same sums */
        float *out = room(IMAGES * size), *activity = room(IMAGES * side * side);
        CORE(conv_forward)(&k, by, bits, NULL, packed[by], bias, out, activity, memory, 0, IMAGES);
        show('F', "convolution", out, IMAGES * size);
        show('F', "windows", activity, IMAGES * side * side);
        float *by_input = room(IMAGES * SIDE * SIDE * IN), *sums = room(sizes[5]), *by_bias = room(OUT + WORD);
        CORE(conv_backward)(&k, by, bits, NULL, back, out, activity, by_input, sums, by_bias, memory, 0, IMAGES);
        CORE(conv_gather)(&k, sums, 1, weights);
        show('G', "by_input", by_input, IMAGES * SIDE * SIDE * IN);
        show('G', "by_kernel", weights, OUT * IN * 9);
        show('G', "by_bias", by_bias, OUT);
    }
}

int main(void)
{
    for (int64_t estimator = STRAIGHT; estimator <= SURROGATE; estimator++) {
        neurons(3, 2, 0, estimator, estimator % 2);
        neurons(1, 1, 1, estimator, estimator % 2);
    }
    products();
    convolution(1);
    convolution(2);
    return 0;
}
