/* What users call. */

void network_reset(network_state *n)
{
    memset(n->memory, 0, sizeof n->memory);
    n->steps = 0;
}

void network_init(network_state *n, uint64_t seed, uint32_t sample)
{
    n->seed = seed;
    n->sample = sample;
    network_reset(n);
}

/* The input is in memory. */
static int take_step(network_state *n)
{
    if (n->steps >= NETWORK_STEPS_KNOWN) return NETWORK_OVER;
    if (!NETWORK_SPIKING) n->steps = 0;
    compute(n);
    n->steps++;
    return 0;
}

int network_step(network_state *n, const float frame[NETWORK_INPUTS])
{
    float *const input = n->memory + INPUT;
    for (int i = 0; i < NETWORK_INPUTS; i++) {
        const float value = frame[i] - NETWORK_CENTRE;
        if (!(value >= -NETWORK_LARGEST && value <= NETWORK_LARGEST) || (float)(int32_t)value != value)
            return NETWORK_BAD_VALUE;
        input[i] = value * NETWORK_UNIT;
    }
    return take_step(n);
}

int network_cell(int x, int y, int p)
{
    const int down = NETWORK_SENSOR_HEIGHT == 1 ? 1 : NETWORK_DOWNSAMPLE;
    const int width = NETWORK_SENSOR_WIDTH / NETWORK_DOWNSAMPLE, height = NETWORK_SENSOR_HEIGHT / down;
    if (x < 0 || x >= NETWORK_SENSOR_WIDTH || y < 0 || y >= NETWORK_SENSOR_HEIGHT) return -1;
    if (p < 0 || p >= NETWORK_POLARITIES) return -1;
    return ((NETWORK_MERGED ? 0 : p) * height + y / down) * width + x / NETWORK_DOWNSAMPLE;
}

int network_step_events(network_state *n, const network_event *events, size_t count)
{
    float *const input = n->memory + INPUT;
    int left_out = 0;
    if (!NETWORK_TAKES_EVENTS) return NETWORK_NO_EVENTS;
    for (int i = 0; i < NETWORK_INPUTS; i++) input[i] = 0.0f;
    for (size_t i = 0; i < count; i++) {
        const int cell = network_cell(events[i].x, events[i].y, events[i].p);
        if (cell < 0) left_out++;
        else if (input[cell] < NETWORK_CLIP) input[cell] += 1.0f;
    }
    for (int i = 0; i < NETWORK_INPUTS; i++) {
        const float value = input[i] - NETWORK_CENTRE;
        if (!(value >= -NETWORK_LARGEST && value <= NETWORK_LARGEST)) return NETWORK_BAD_VALUE;
        input[i] = value * NETWORK_UNIT;
    }
    const int refused = take_step(n);
    return refused ? refused : left_out;
}

void network_logits(const network_state *n, float logits[NETWORK_MEMBERS][NETWORK_CLASSES])
{
    for (int m = 0; m < NETWORK_MEMBERS; m++)
        for (int c = 0; c < NETWORK_CLASSES; c++) {
            const float value = n->memory[RESULTS[m] + c];
            logits[m][c] = NETWORK_SPIKING ? value / (float)n->steps : value;
        }
}
