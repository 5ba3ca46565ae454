/* The loop over samples, time steps and instructions: one call for a whole chunk.

   A program is a table of integers, a row for each instruction, and an order: what is taken together, as numbers of
   rows. All places in it have been checked against the sizes of the arrays before it comes here. */

typedef struct {
    const int64_t *table;
    const int32_t *order; /* TURN numbers for each turn */
    arrays a;
    const int32_t *tables;
    const int64_t *groups; /* where each group of turns begins; then where the last ends */
    int64_t rows, turns, parts, at_start, kept, entering, traced, scale, largest;
    int64_t layered; /* tables, one for each of so many steps, or 0: see layered.py */
} program;

/* One turn: a row; or synapses and neurons together. −1 where there is none. */
enum { TURN_ROW, TURN_MORE, TURN_FIRE, TURN_LEAN, TURN_THEN, TURN_KEPT = TURN_THEN + CHAIN, TURN = TURN_KEPT + CHAIN + 1 };

enum { LEAN_SPIKES = 1, LEAN_SOURCE = 2 }; /* whose spikes are bits: the neurons', or those that a convolution reads */

static const int64_t *row_of(const program *p, int32_t number)
{
    return number < 0 ? NULL : p->table + (int64_t)number * COLUMNS;
}

/* A layer's spikes and membranes, to the trace. */
static void keep_trace(const int64_t *r, const float *memory, float *trace)
{
    if (r[0] == FIRE_GENERAL) {
        copy(trace + r[GENERAL_trace_spikes], memory + r[GENERAL_next_spikes], r[GENERAL_size]);
        copy(trace + r[GENERAL_trace_membrane], memory + r[GENERAL_next_membrane], r[GENERAL_size]);
        return;
    }
    copy(trace + r[FIRE_trace_spikes], memory + r[FIRE_next_spikes], r[FIRE_size]);
    if (r[FIRE_trace_membrane] >= 0)
        copy(trace + r[FIRE_trace_membrane], memory + r[FIRE_next_membrane], r[FIRE_size]);
}

/* A layer's spikes as numbers. */
static void numbers(const program *p, const int64_t *r)
{
    from_bits(r[FIRE_spikes], r[FIRE_size], p->a.memory, p->a.bits);
}

/* Neurons may take their sums block by block unless a later block needs the list that they write. */
static int may_join(const int64_t *r, const int64_t *more, const int64_t *fires)
{
    const int64_t listed = fires[FIRE_listed];
    if (block_width(r[LINEAR_size]) == r[LINEAR_size]) return 1;
    return r[LINEAR_listed] != listed && !(more && more[LINEAR_listed] == listed);
}

static void take_linear(const program *p, const int32_t *turn, int64_t *counts)
{
    const int64_t *r = row_of(p, turn[TURN_ROW]), *more = row_of(p, turn[TURN_MORE]);
    const int64_t *fires = row_of(p, turn[TURN_FIRE]);
    counts[turn[TURN_ROW]] += p->a.events[r[LINEAR_counted]] * r[LINEAR_outputs];
    if (more) counts[turn[TURN_MORE]] += p->a.events[more[LINEAR_counted]] * more[LINEAR_outputs];
    const int lean = turn[TURN_LEAN] & LEAN_SPIKES;
    if (fires && lean && may_join(r, more, fires)) {
        counts[turn[TURN_FIRE]] += linear(r, more, fires, &p->a);
        return;
    }
    linear(r, more, NULL, &p->a);
    if (fires) counts[turn[TURN_FIRE]] += fire_all(fires, lean, &p->a);
}

#if USES_CONVOLUTIONS
static void take_conv(const program *p, const int32_t *turn, int64_t *counts)
{
    const int64_t *r = row_of(p, turn[TURN_ROW]);
    int64_t spikes = 0, seen;
    chain c = {.conv = r, .fire = row_of(p, turn[TURN_FIRE]), .lean = (turn[TURN_LEAN] & LEAN_SPIKES)};
    for (int n = 0; n < CHAIN; n++) c.then[n] = row_of(p, turn[TURN_THEN + n]);
    for (int n = 0; n <= CHAIN; n++) c.kept[n] = turn[TURN_KEPT + n];
    if (p->a.events[r[CONV_counted]] > r[CONV_dense_above]) {
        if (turn[TURN_LEAN] & LEAN_SOURCE)
            from_list(r[CONV_source], r[CONV_height] * r[CONV_width] * r[CONV_pitch], r[CONV_listed],
                      r[CONV_counted], p->a.memory, p->a.events);
        seen = reached(r, p->a.events);
        conv_dense(r, p->a.memory, p->a.constants);
        for (int n = 0; n < CHAIN && c.then[n]; n++) arithmetic(c.then[n], p->a.memory, p->a.constants);
        if (c.fire) spikes = fire_all(c.fire, c.lean, &p->a);
    } else {
        seen = conv_sparse(&c, &p->a, &spikes);
    }
    counts[turn[TURN_ROW]] += seen * r[CONV_outputs];
    if (c.fire) counts[turn[TURN_FIRE]] += spikes;
}
#endif

/* One step's input: from memory; or as it comes from outside, and then numbers go to memory only where they matter. */
static int take_input(const program *p, const int64_t *loads, const int64_t *r, const float *outside)
{
    const float *source = loads ? outside + loads[LOAD_at] : p->a.memory + r[SCAN_INPUT_source];
    const int64_t values = loads ? loads[LOAD_pixels] : r[SCAN_INPUT_size];
    const int plain = scan_input(r, source, values, p->a.events, (float)p->scale, (float)p->largest);
    if (plain < 0) return -1;
    if (loads && !plain) load_outside(loads, p->a.memory, outside);
    p->a.events[r[SCAN_INPUT_plain]] = plain;
    return 0;
}

static void take_rest(const program *p, const int64_t *r, int64_t step)
{
    switch (r[0]) {
    case ARITHMETIC: arithmetic(r, p->a.memory, p->a.constants); break;
    case MOVE: move(r, p->a.memory, p->tables); break;
    case LEAKY_SUM: leaky_sum(r, p->a.memory, p->a.constants); break;
    case LEAKY_CURRENT: leaky_current(r, p->a.memory, p->a.constants); break;
    case POOL_PAIRS: pool_pairs(r, p->a.memory); break;
    case AVERAGE_POOL:
    case MAX_POOL: pool_windows(r, p->a.memory); break;
    case ACTIVITY: recurrent_activity(r, p->a.memory); break;
    case ROW:
        copy(p->a.memory + r[STEP_ROW_out], p->a.constants + r[STEP_ROW_table] + step * r[STEP_ROW_size], r[STEP_ROW_size]);
        break;
    case COPY: copy(p->a.memory + r[COPY_out], p->a.memory + r[COPY_source], r[COPY_size]); break;
    }
}

/* Some turns of one time step of one sample; −1 where the contract does not admit its input. */
static int take_turns(const program *p, int64_t from, int64_t to, const float *outside, int64_t *counts, float *trace,
                      int64_t step)
{
    for (int64_t n = from; n < to; n++) {
        const int32_t *turn = p->order + n * TURN;
        const int64_t *r = row_of(p, turn[TURN_ROW]);
        int32_t fired = turn[TURN_FIRE];
        switch (r[0]) {
        case LINEAR: take_linear(p, turn, counts); break;
#if USES_CONVOLUTIONS
        case CONV: take_conv(p, turn, counts); break;
#endif
        case FIRE:
        case FIRE_NOISY:
        case FIRE_GENERAL:
            fired = turn[TURN_ROW];
            counts[fired] += fire_all(r, (turn[TURN_LEAN] & LEAN_SPIKES), &p->a);
            break;
        case LOAD:
            if (turn[TURN_MORE] < 0) load_outside(r, p->a.memory, outside);
            else if (take_input(p, r, row_of(p, turn[TURN_MORE]), outside) < 0) return -1;
            break;
        case SCAN: scan(r, p->a.memory, p->a.events); break;
        case SCAN_INPUT:
            if (take_input(p, NULL, r, outside) < 0) return -1;
            break;
        default: take_rest(p, r, step);
        }
        if (trace && fired >= 0 && (turn[TURN_LEAN] & LEAN_SPIKES)) numbers(p, row_of(p, fired));
        if (trace && fired >= 0) keep_trace(row_of(p, fired), p->a.memory, trace);
    }
    return 0;
}

/* The layers whose spikes are bits. */
static const int64_t *lean_row(const program *p, int64_t n)
{
    const int32_t *turn = p->order + n * TURN;
    return (turn[TURN_LEAN] & LEAN_SPIKES) ? row_of(p, turn[TURN_FIRE] >= 0 ? turn[TURN_FIRE] : turn[TURN_ROW]) : NULL;
}

static void enter(const program *p)
{
    for (int64_t n = 0; n < p->at_start && !p->layered; n++) scan(row_of(p, p->order[n * TURN]), p->a.memory, p->a.events);
    for (int64_t n = p->at_start; n < p->turns; n++)
        if (lean_row(p, n)) to_bits(lean_row(p, n), p->a.memory, p->a.bits);
}

static void leave(const program *p)
{
    for (int64_t n = p->at_start; n < p->turns; n++)
        if (lean_row(p, n)) numbers(p, lean_row(p, n));
}

/* Input of one step, in [T, B, …], and its trace. */
INLINE const float *given_at(const program *p, const float *outside, int64_t batch, int64_t t)
{
    return outside + t * batch * p->entering;
}

INLINE float *trace_at(const program *p, float *trace, int64_t batch, int64_t t)
{
    return trace ? trace + t * batch * p->traced : NULL;
}

/* All steps of one sample. Groups of turns that have nothing but the input in common (members of an ensemble) go
   through time one after another, so that the weights of one stay in the cache. */
static int take_steps(const program *p, const float *outside, int64_t *counts, float *trace, int64_t steps,
                      int64_t step, int64_t batch)
{
    for (int64_t g = 0; g < p->parts; g++)
        for (int64_t t = 0; t < steps; t++) {
            const float *given = given_at(p, outside, batch, t);
            float *seen = trace_at(p, trace, batch, t);
            if (take_turns(p, p->at_start, p->groups[0], given, counts, seen, step + t) < 0) return -1;
            take_turns(p, p->groups[g], p->groups[g + 1], given, counts, seen, step + t);
        }
    return 0;
}

/* The same layer by layer, some steps at a time, each with its own table. */
static int take_layers(const program *p, const float *outside, int64_t *counts, float *trace, int64_t steps,
                       int64_t step, int64_t batch)
{
    for (int64_t begin = 0; begin < steps; begin += p->layered)
        for (int64_t g = 0; g < p->parts; g++)
            for (int64_t t = begin; t < steps && t < begin + p->layered; t++) {
                program now = *p;
                now.table += (t - begin) * p->rows * COLUMNS;
                if (take_turns(&now, p->groups[g], p->groups[g + 1], given_at(p, outside, batch, t), counts,
                               trace_at(p, trace, batch, t), step + t) < 0)
                    return -1;
            }
    return 0;
}

/* Carry the states [B, kept] of samples low … high − 1 through all steps; the first sample refused, or −1.
   A resident state is in memory already, with its events listed, and stays there. */
int64_t axonnx_run(const program *p, const float *outside, float *state, int64_t *counts, float *trace, int64_t steps,
                   int64_t step, int64_t batch, int64_t low, int64_t high, int64_t resident)
{
    for (int64_t b = low; b < high; b++) {
        if (!resident) {
            copy(p->a.memory, state + b * p->kept, p->kept);
            enter(p);
        }
        float *seen = trace ? trace + b * p->traced : NULL;
        const float *given = outside + b * p->entering;
        if ((p->layered ? take_layers : take_steps)(p, given, counts + b * p->rows, seen, steps, step, batch) < 0)
            return b;
        leave(p);
        if (!resident) copy(state + b * p->kept, p->a.memory, p->kept);
    }
    return -1;
}

int64_t axonnx_widest(void)
{
    return WIDEST;
}
