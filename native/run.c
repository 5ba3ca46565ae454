/* The loop over samples, time steps and instructions: one call for a whole chunk.

   It is compiled once for each instruction set; CORE(run) and CORE(lanes) contain the name of the set. */
#include "vectors.h"
#include "generated.h"
#include "program.h"
#include "lists.h"
#include "neurons.h"
#include "synapses.h"
#include "dense.h"
#include "plain.h"
#include "layers.h"

enum { LEAN_SPIKES = 1 }; /* the neurons' spikes are bits */

/* Copies a layer's spikes and membranes to the trace. */
static void keep_trace(const program *p, const int32_t *r, int lean, scalar *trace)
{
    if (lean) from_bits(p, r);
    if (r[NEURONS_trace_spikes] >= 0)
        copy(trace + r[NEURONS_trace_spikes], p->memory + r[NEURONS_next_spikes], r[NEURONS_size]);
    if (r[NEURONS_trace_membrane] >= 0)
        copy(trace + r[NEURONS_trace_membrane], p->memory + r[NEURONS_membrane], r[NEURONS_size]);
}

/* Runs a synapse, or two that share their sums, and their neurons. `ready`: the first one was already added. */
static void take_linear(const program *p, const int32_t *turn, int64_t *counts, int ready)
{
    const int32_t *r = row_of(p, turn[TURN_ROW]), *more = row_of(p, turn[TURN_MORE]);
    counts[turn[TURN_ROW]] += (int64_t)p->events[r[LINEAR_counted]] * r[LINEAR_outputs];
    if (more) counts[turn[TURN_MORE]] += (int64_t)p->events[more[LINEAR_counted]] * more[LINEAR_outputs];
    if (!ready) {
        begin_sums(p, r[LINEAR_bias], p->memory + r[LINEAR_out], r[LINEAR_size], r[LINEAR_size]);
        add_linear(p, turn[TURN_ROW]);
    }
    if (more) add_linear(p, turn[TURN_MORE]);
    if (turn[TURN_FIRE] >= 0) counts[turn[TURN_FIRE]] += take_layer(p, row_of(p, turn[TURN_FIRE]), LEAN(turn));
}

#if USES_CONVOLUTIONS
/* Runs a convolution, arithmetic on its result, and its neurons, one row of pixels at a time. If nothing else reads
   a result, only the current row is kept. */
static void take_conv(const program *p, const int32_t *turn, int64_t *counts)
{
    const int32_t *r = row_of(p, turn[TURN_ROW]), *fire = row_of(p, turn[TURN_FIRE]);
    const int32_t size = r[CONV_out_width] * r[CONV_out_pitch], taps = r[CONV_window_height] * r[CONV_window_width];
    const synapse s = synapse_of(p, r, (int64_t)taps * r[CONV_pitch] + 1, r[CONV_out_pitch]);
    scalar *scratch[2] = {p->memory + r[CONV_scratch], p->memory + r[CONV_scratch] + size};
    int64_t seen = 0;
    int32_t fired = 0;
#if HAS_PAIRS
    const int dense = is_dense(p, r, r[CONV_height] * r[CONV_width] * r[CONV_channels], 0);
    if (dense) seen = pack_image(p, r);
#endif
    for (int32_t y = 0; y < r[CONV_out_height]; y++) {
        const int32_t at = y * size;
        scalar *sums = turn[TURN_KEPT] || r[CONV_bias] == ADD_TO_SUM ? p->memory + r[CONV_out] + at : scratch[0];
        int32_t from = r[CONV_out];
        begin_sums(p, r[CONV_bias], sums, r[CONV_out_pitch], size);
#if HAS_PAIRS
        if (dense) conv_row_dense(p, r, y, sums);
        else
#endif
            seen += conv_row_sparse(p, r, &s, y, sums);
        for (int n = 0; n < CHAIN && turn[TURN_THEN + n] >= 0; n++) {
            const int32_t *then = row_of(p, turn[TURN_THEN + n]);
            scalar *out = turn[TURN_KEPT + n + 1] ? p->memory + then[ARITHMETIC_out] + at : scratch[(n + 1) % 2];
            operate(p, then, at, at + size, out, sums, from);
            from = then[ARITHMETIC_out];
            sums = out;
        }
        if (fire) fired = take_neurons(p, fire, LEAN(turn), at, at + size, sums, fired);
    }
    counts[turn[TURN_ROW]] += seen * r[CONV_outputs];
    if (!fire) return;
    end_spikes(p, fire, fired);
    counts[turn[TURN_FIRE]] += fired;
}
#endif

/* Takes one step's input from memory, or directly from outside; then numbers are copied to memory only if needed. */
static int take_input(const program *p, const int32_t *loads, const int32_t *r, const scalar *outside, int64_t ahead)
{
    const scalar *source = loads ? outside + loads[LOAD_at] : p->memory + r[SCAN_INPUT_source];
    const int32_t values = loads ? loads[LOAD_pixels] : r[SCAN_INPUT_size];
    int plain = scan_input(p, r, source, values, loads ? ahead : 0);
    if (plain < 0) return -1;
    /* Numbers are needed if they are graded, and they are faster to pack than a list if many inputs are active. */
    const int many = p->events[r[SCAN_INPUT_starts] + r[SCAN_INPUT_size] / r[SCAN_INPUT_pitch]] > values / 4;
    if (loads && (plain == GRADED || many)) load_outside(p, loads, outside);
    if (plain == PLAIN && (!loads || many)) plain = PLAIN_IN_MEMORY;
    p->events[r[SCAN_INPUT_plain]] = plain;
    return 0;
}

static void take_rest(const program *p, const int32_t *r, int64_t step)
{
    switch (r[0]) {
    case ARITHMETIC: operate(p, r, 0, r[ARITHMETIC_size], p->memory + r[ARITHMETIC_out], p->memory, -1); break;
    case MOVE: move(p, r); break;
    case ACTIVITY: recurrent_activity(p, r); break;
    case POOL: pool(p, r); break;
    case ROW:
        copy(p->memory + r[STEP_ROW_out], p->constants + r[STEP_ROW_table] + step * r[STEP_ROW_size], r[STEP_ROW_size]);
        break;
    case COPY: copy(p->memory + r[COPY_out], p->memory + r[COPY_source], r[COPY_size]); break;
    }
}

/* The arguments of a time step: input and noise, its trace, and the distance to the next step's input. */
typedef struct {
    const scalar *outside;
    scalar *trace;
    int64_t *counts;
    int64_t step, ahead;
} given;

/* Runs some turns of one time step; returns −1 if the contract does not allow the input. For `ready` see
   `take_linear`. */
static int take_turns(const program *p, int64_t begin, int64_t end, const given *g, int ready)
{
    for (int64_t n = begin; n < end; n++) {
        const int32_t *turn = p->order + n * TURN, *r = row_of(p, turn[TURN_ROW]);
        int32_t fired = turn[TURN_FIRE];
        switch (r[0]) {
        case LINEAR: take_linear(p, turn, g->counts, ready && n == begin); break;
#if USES_CONVOLUTIONS
        case CONV: take_conv(p, turn, g->counts); break;
#endif
        case NEURONS:
            fired = turn[TURN_ROW];
            g->counts[fired] += take_layer(p, r, LEAN(turn));
            break;
        case LOAD:
            if (turn[TURN_MORE] < 0) load_outside(p, r, g->outside);
            else if (take_input(p, r, row_of(p, turn[TURN_MORE]), g->outside, g->ahead) < 0) return -1;
            break;
        case SCAN: scan(p, r); break;
        case SCAN_INPUT:
            if (take_input(p, NULL, r, g->outside, 0) < 0) return -1;
            break;
        default: take_rest(p, r, g->step);
        }
        if (RARE(g->trace != NULL) && fired >= 0) keep_trace(p, row_of(p, fired), LEAN(turn), g->trace);
    }
    return 0;
}

/* Returns the row of a layer whose spikes are bits, or NULL. */
static const int32_t *lean_row(const program *p, int64_t n)
{
    const int32_t *turn = p->order + n * TURN;
    return LEAN(turn) ? row_of(p, turn[TURN_FIRE] >= 0 ? turn[TURN_FIRE] : turn[TURN_ROW]) : NULL;
}

/* Lists the spikes of the states where the next step expects those of its previous step. */
static void enter(const program *p, const program *before)
{
    for (int64_t n = 0; n < p->at_start; n++) scan(before, row_of(before, p->order[n * TURN]));
    for (int64_t n = p->at_start; n < p->turns; n++)
        if (lean_row(p, n)) to_bits(p, lean_row(p, n));
}

static void leave(const program *p)
{
    for (int64_t n = p->at_start; n < p->turns; n++)
        if (lean_row(p, n)) from_bits(p, lean_row(p, n));
}

/* Computes the sums of a group's first synapse for all steps at once if it is dense, so that every weight serves
   several steps. The rows of a tile have equal distances, so the steps must be consecutive. Returns one bit for each
   completed step. */
static uint32_t add_ahead(const program *steps, int32_t count, int64_t turn)
{
#if HAS_PAIRS
    const int32_t number = steps->order[turn * TURN + TURN_ROW], *first = row_of(steps, number);
    uint32_t ready = 0;
    if (first[0] != LINEAR || first[LINEAR_old] || first[LINEAR_dense] < 0) return 0;
    for (int32_t begin = 0, end; begin < count; begin = end + 1) {
        for (end = begin; end < count; end++) {
            const int32_t *r = row_of(steps + end, number);
            if (!is_dense(steps + end, r, r[LINEAR_inputs], 0) || is_graded(steps + end, r)) break;
        }
        if (end - begin < LEAST_ROWS) continue;
        for (int32_t n = begin; n < end; n++) {
            const int32_t *r = row_of(steps + n, number);
            begin_sums(steps + n, r[LINEAR_bias], steps[n].memory + r[LINEAR_out], r[LINEAR_size], r[LINEAR_size]);
            ready |= 1u << n;
        }
        linear_dense(steps + begin, end - begin, number);
    }
    return ready;
#else
    (void)steps, (void)count, (void)turn;
    return 0;
#endif
}

/* Runs all steps of one sample. Each group of turns processes some time steps before the next group does, so that
   its weights and membranes stay in the cache. */
static int take_steps(const program *slots, const given *g, int64_t steps, int64_t entering, int64_t traced)
{
    const int64_t most = slots->slots;
    for (int64_t begin = 0, count; begin < steps; begin += count) {
        const int64_t slot = (g->step + begin) % most;
        count = most - slot < steps - begin ? most - slot : steps - begin;
        for (int64_t part = 0; part < slots->parts; part++) {
            const int32_t *ends = slots->groups + part;
            const uint32_t ready = add_ahead(slots + slot, (int32_t)count, ends[0]);
            for (int64_t n = 0; n < count; n++) {
                const int64_t t = begin + n;
                const given now = {.outside = g->outside + t * entering, .trace = g->trace ? g->trace + t * traced : NULL,
                                   .counts = g->counts, .step = g->step + t, .ahead = t + 1 < steps ? entering : 0};
                if (take_turns(slots + slot + n, ends[0], ends[1], &now, ready >> n & 1) < 0) return -1;
            }
        }
    }
    return 0;
}

/* Runs all steps on the states [B, kept] of samples low … high − 1; returns the first refused sample, or −1. Input
   [T, B, entering], counts [B, rows], trace [T, B, traced] or NULL. A resident state, with its events listed, is
   already in memory and stays there. */
EXPORT int64_t CORE(run)(const program *p, const scalar *outside, scalar *state, int64_t *counts, scalar *trace,
                         int64_t steps, int64_t step, int64_t batch, int64_t low, int64_t high, int64_t resident)
{
    program slots[MOST_SLOTS]; /* one program for each of the steps processed together, with its own table */
    for (int64_t n = 0; n < p->slots; n++) {
        slots[n] = *p;
        slots[n].table += n * p->rows * COLUMNS;
    }
    for (int64_t b = low; b < high; b++) {
        const given g = {.outside = outside + b * p->entering, .trace = trace ? trace + b * p->traced : NULL,
                         .counts = counts + b * p->rows, .step = step};
        if (!resident) {
            copy(p->memory, state + b * p->kept, p->kept);
            enter(p, slots + (step + p->slots - 1) % p->slots);
        }
        if (take_steps(slots, &g, steps, batch * p->entering, batch * p->traced) < 0) return b;
        leave(p);
        if (!resident) copy(state + b * p->kept, p->memory, p->kept);
    }
    return -1;
}

/* Returns 1 if the compiler fused a product with an addition, which changes bits: the square of 1 + 2^−12, minus its
   rounded value. */
EXPORT int64_t CORE(fuses)(void)
{
#ifdef CORE_WHOLE
    return 0; /* it has no products of floats */
#else
    volatile float a = 1.000244140625f, c = -1.00048828125f;
    const float x = a, y = a, z = c;
    const float product = x * y;
    const float sum = product + z; /* kernels assign every operation in the same way */
    return sum != 0.0f;
#endif
}
