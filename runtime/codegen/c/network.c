/* Selects the build of the core: the best one that this processor supports, if the Makefile has made several. */
typedef int64_t run_function(const program *, const scalar *, scalar *, int64_t *, scalar *, int64_t, int64_t, int64_t,
                             int64_t, int64_t, int64_t);
typedef struct {
    const char *name;
    run_function *run;
    int64_t (*fuses)(void);
} build;
#define DECLARE(isa)                                                                                                   \
    run_function network_core_run_##isa;                                                                               \
    int64_t network_core_fuses_##isa(void);
#define BUILD(isa) ((build){#isa, network_core_run_##isa, network_core_fuses_##isa})
DECLARE(base)
#ifdef NETWORK_X86
DECLARE(avx2)
DECLARE(avx512)
#endif

static build best(void)
{
#ifdef NETWORK_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma"))
        return BUILD(avx512);
    if (__builtin_cpu_supports("avx2")) return BUILD(avx2);
#endif
    return BUILD(base);
}

const char *network_isa(void)
{
    return best().name;
}

int network_fuses(void)
{
    return best().fuses() != 0;
}

/* The functions for users. */

void network_reset(network_state *n)
{
    memset(n->memory, 0, sizeof n->memory);
    memset(n->events, 0, sizeof n->events);
    memset(n->bits, 0, sizeof n->bits);
    memset(n->counts, 0, sizeof n->counts);
    n->steps = 0;
}

void network_init(network_state *n, uint64_t seed, uint32_t sample)
{
    n->seed = seed;
    n->sample = sample;
    network_reset(n);
}

/* The input, and behind it the noise where there is any. */
static int take_step(network_state *n, const network_value *outside)
{
    const program p = {TABLE, ORDER, GROUPS, TABLES, CONSTANTS, (const int8_t *)&WEIGHTS, n->memory, n->events, n->bits,
                       n->packed, NETWORK_ROWS, TURNS, 1, AT_START, KEPT, NETWORK_OUTSIDE, NETWORK_TRACE, SCALE,
                       LARGEST_UNITS, 1, PADDING, {DENSE_FROM}};
    const build core = best();
    if (n->steps >= NETWORK_STEPS_KNOWN) return NETWORK_OVER;
    if (n->steps == 0 && core.fuses()) return NETWORK_FUSED;
    if (!NETWORK_SPIKING) n->steps = 0;
    DRAW_NOISE(n)
    if (core.run(&p, outside, n->memory, n->counts, KEEP_TRACE(n), 1, n->steps, 1, 0, 1, 1) >= 0)
        return NETWORK_BAD_VALUE;
    n->steps++;
    return 0;
}

/* Values that are the input as they stand go to the core where they are: it refuses what the contract does not admit.
   Others are checked before they are changed, and become the input in `outside`. */
static int take_values(network_state *n, const network_value *values)
{
    if (NETWORK_CENTRE == 0 && NETWORK_UNIT == 1 && !NETWORK_SCALED_TO && NETWORK_OUTSIDE == NETWORK_INPUTS)
        return take_step(n, values);
    int64_t sum = 0;
    for (int i = 0; i < NETWORK_INPUTS; i++) {
        const network_value value = values[i] - NETWORK_CENTRE;
        if (!(value >= (NETWORK_SCALED_TO ? 0 : -NETWORK_LARGEST) && value <= NETWORK_LARGEST)
            || (network_value)(int32_t)value != value)
            return NETWORK_BAD_VALUE;
        if (NETWORK_SCALED_TO) sum += (int64_t)value;
    }
    for (int i = 0; i < NETWORK_INPUTS; i++)
        n->outside[i] = scaled_count(values[i] - NETWORK_CENTRE, sum) * NETWORK_UNIT;
    return take_step(n, n->outside);
}

int network_step(network_state *n, const network_value frame[NETWORK_INPUTS])
{
    return take_values(n, frame);
}

/* Pixel x of `old` pixels becomes the one of `new` pixels that contains its centre. */
static int scaled(int x, int old, int new)
{
    return old == new ? x : (int)((2 * (int64_t)x + 1) * new / (2 * (int64_t)old));
}

int network_cell(int x, int y, int p)
{
    const int down = NETWORK_GRID_HEIGHT == 1 ? 1 : NETWORK_DOWNSAMPLE;
    const int width = NETWORK_GRID_WIDTH / NETWORK_DOWNSAMPLE, height = NETWORK_GRID_HEIGHT / down;
    if (x < 0 || x >= NETWORK_SENSOR_WIDTH || y < 0 || y >= NETWORK_SENSOR_HEIGHT) return NETWORK_OFF_SENSOR;
    if (p < 0 || p >= NETWORK_POLARITIES) return NETWORK_BAD_POLARITY;
    x -= NETWORK_REGION_LEFT;
    y -= NETWORK_REGION_TOP;
    if (x < 0 || x >= NETWORK_REGION_WIDTH || y < 0 || y >= NETWORK_REGION_HEIGHT) return NETWORK_CROPPED;
    x = scaled(x, NETWORK_REGION_WIDTH, NETWORK_GRID_WIDTH);
    y = scaled(y, NETWORK_REGION_HEIGHT, NETWORK_GRID_HEIGHT);
    return ((NETWORK_MERGED ? 0 : p) * height + y / down) * width + x / NETWORK_DOWNSAMPLE;
}

int network_step_events(network_state *n, const network_event *events, size_t count)
{
    network_value *const input = n->outside;
    int left_out = 0;
    if (!NETWORK_TAKES_EVENTS) return NETWORK_NO_EVENTS;
    for (int i = 0; i < NETWORK_INPUTS; i++) input[i] = 0;
    for (size_t i = 0; i < count; i++) {
        const int cell = network_cell(events[i].x, events[i].y, events[i].p);
        if (cell == NETWORK_OFF_SENSOR || cell == NETWORK_BAD_POLARITY) left_out++;
        else if (cell >= 0 && input[cell] < NETWORK_CLIP) input[cell] += 1;
    }
    const int refused = take_values(n, input);
    return refused ? refused : left_out;
}

void network_logits(const network_state *n, float logits[NETWORK_MEMBERS][NETWORK_CLASSES])
{
    for (int m = 0; m < NETWORK_MEMBERS; m++)
        for (int c = 0; c < NETWORK_CLASSES; c++) {
            const float value = LOGIT(n->memory[RESULTS[m] + c], m);
            logits[m][c] = NETWORK_MEAN ? value / (float)n->steps : value;
        }
}
