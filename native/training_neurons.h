/* Spiking neurons through time, forwards and backwards, for some samples of a batch.

   Memory is [steps][batch][pixels][channels]. A sample's neurons are taken in parts whose membranes stay in the cache
   while time passes; a recurrent layer (one pixel) is one part, because all of it hears all of it. Constants of channels
   are padded to whole words. A pointer is NULL for what a layer does not have. */

enum { PART = 64 * WORD };                   /* neurons whose state stays in the cache */
enum { TOGETHER = 8 };                       /* samples of a recurrent layer that read each weight once, backwards */
enum { NO_SPREAD, PRODUCT, MAP };            /* of noise: none; activity times gain; one number for each neuron */
enum { NO_NOISE, DRAWN, GIVEN };
enum { STRAIGHT, WEIGHTED, LOW_VARIANCE, ANALYTIC, UNIFORM, LOGISTIC, SURROGATE };
#define VARIANCE_FLOOR 1e-20f

typedef struct {
    const float *mean;
    const float *activity;         /* of each pixel and term, or the variance of each neuron if there is no gain */
    const float *gain;             /* of each term and padded channel */
    const float *noise;            /* ε, if it is given */
    const float *membrane0, *variance0;
    const float *decay, *threshold;
    const float *weight;           /* recurrent means [from][padded to] */
    const float *own, *each;       /* recurrent variances: of each neuron, or of each weight [from][padded to] */
    uint16_t *bits;                /* [steps + 1]: from the spikes before the first step on */
    float *spikes;
    void *gap;                     /* h* − θ */
    float *total;                  /* κ² of the decision */
    float *membrane, *variance;    /* after the last step */
    double *sums;                  /* ½ Σ ln(1 + z²) and Σ z² of each sample */
    int64_t steps, batch, pixels, channels;
    int64_t terms;                 /* products of activity and gain that are added up to a variance */
    int64_t halves;                /* whether the gap is float16 */
    int64_t drawn, first_step, to_zero;
    uint64_t seed;
    float base, scale;             /* σ_base²; what ε|ε| is multiplied with */
} lif;

typedef struct {
    lif of;
    const float *panels, *each_panels; /* recurrent means and variances as panels, for products with gradients */
    const float *by_spikes, *by_membrane, *by_variance;
    const void *by_gap;                /* as the gap itself */
    float *h_grads;                    /* of h*, which are those of the mean current */
    float *v_grads;                    /* of κ², where the variance is a map */
    float *by_activity;
    float *by_gain;                             /* of each sample, term and padded channel */
    double *by_decay, *by_threshold, *by_own;   /* of each sample and padded channel */
    double *by_base;                            /* of each sample */
    float *first_membrane, *first_variance, *first_spikes;
    int64_t estimator;
    float by_log, by_quadratic, option; /* an estimator's p, temperature or width */
} lif_grads;

/* Where a pass is: neuron i of the padded sample, its channel, and its place in a step's memory. */
typedef struct {
    int64_t i, channel, pixel, place;
    int lanes; /* that hold neurons */
} spot;

INLINE int64_t padded_of(const lif *p) { return PADDED(p->channels); }

INLINE spot spot_at(const lif *p, int64_t i)
{
    const int64_t pixel = i / padded_of(p), channel = i % padded_of(p), left = p->channels - channel;
    return (spot){.i = i, .channel = channel, .pixel = pixel, .place = pixel * p->channels + channel,
                  .lanes = left >= LANES ? LANES : left > 0 ? (int)left : 0};
}

INLINE void advance(const lif *p, spot *s)
{
    const int64_t padded = padded_of(p);
    s->i += LANES;
    s->channel += LANES;
    s->place += LANES;
    if (s->channel == padded) {
        s->channel = 0;
        s->pixel++;
        s->place = s->pixel * p->channels;
    }
    const int64_t left = p->channels - s->channel;
    s->lanes = left >= LANES ? LANES : left > 0 ? (int)left : 0;
}

INLINE int64_t place_of_step(const lif *p, int64_t t, int64_t b)
{
    return (t * p->batch + b) * p->pixels * p->channels;
}

INLINE uint16_t *bits_before(const lif *p, int64_t t, int64_t b)
{
    return p->bits + (t * p->batch + b) * p->pixels * (padded_of(p) / WORD);
}

INLINE vec load_gap(const lif *p, const void *from, int64_t place, int lanes)
{
    if (p->halves) return load_halves((const uint16_t *)from + place, lanes);
    return load_some((const float *)from + place, lanes);
}

INLINE vec load_or_zero(const float *from, int64_t place, int lanes)
{
    return from ? load_some(from + place, lanes) : splat(0.0f);
}

/* What a recurrent layer hears: the sum of the rows of weights of those that fired, in ascending order. */
static void hear(const float *rows, int64_t padded, const int32_t *list, int32_t count, float *out)
{
    for (int64_t done = 0; done < padded;) {
        const int64_t left = (padded - done) / LANES;
        if (left >= MOST_VECTORS) {
            add_rows(MOST_VECTORS, rows + done, padded, list, count, NULL, out + done);
            done += MOST_VECTORS * LANES;
        } else {
            add_rows(1, rows + done, padded, list, count, NULL, out + done);
            done += LANES;
        }
    }
}

/* Most layers are simple: nothing is recurrent, membranes keep their rest, and channels fill whole words. Loops for them are
   compiled apart, without the questions that others need. */
INLINE int is_simple(const lif *p)
{
    return !p->weight && !p->own && !p->each && !p->total && !p->to_zero && p->channels % WORD == 0;
}

INLINE lif without_options(const int simple, lif p)
{
    if (simple) {
        p.weight = p.own = p.each = NULL;
        p.total = NULL;
        p.to_zero = 0;
    }
    return p;
}

/* Buffers of a recurrent layer for one step of one sample: a list, W·o, and Σ ν² o². */
typedef struct {
    int32_t *list, count;
    float *product, *scatter;
} heard;

INLINE void hear_step(const lif *p, heard *h, const uint16_t *before, int means)
{
    if (means || p->each) h->count = list_bits(before, padded_of(p) / WORD, h->list);
    else h->count = count_bits(before, padded_of(p) / WORD);
    if (means) hear(p->weight, padded_of(p), h->list, h->count, h->product);
    if (p->each) hear(p->each, padded_of(p), h->list, h->count, h->scatter);
}

INLINE const float *activity_of(const lif *p, int64_t t, int64_t b, const spot *s)
{
    return p->activity + ((t * p->batch + b) * p->pixels + s->pixel) * p->terms;
}

/* κ²[t] = β²·κ²[t−1] + Var I[t] */
INLINE vec next_variance(const int spread, const lif *p, const heard *h, int64_t t, int64_t b, const spot *s, vec k,
                         mask before)
{
    vec arriving;
    const vec decay = load(p->decay + s->channel);
    if (spread == PRODUCT) {
        const float *active = activity_of(p, t, b, s), *gain = p->gain + s->channel;
        arriving = splat(*active) * load(gain);
        for (int64_t k = 1; k < p->terms; k++) arriving = arriving + splat(active[k]) * load(gain + k * padded_of(p));
    } else arriving = load_some(p->activity + place_of_step(p, t, b) + s->place, s->lanes);
    if (p->own) {
        const vec others = splat((float)h->count) - numbers_of(before);
        arriving = load(p->own + s->channel) * others + arriving;
    }
    if (p->each) arriving = load(h->scatter + s->i) + arriving;
    if (p->to_zero) k = k * (splat(1.0f) - numbers_of(before));
    return decay * decay * k + arriving;
}

/* ---------------------------------------------------------------- forwards */
typedef struct {
    vec squares, product, exponents;
} divergence;

/* Adds z² = d²/v to one sum, and 1 + z² to a product whose exponent is counted apart. */
INLINE void add_ratio(divergence *sums, vec gap, vec total)
{
    vec exponent;
    const mask noisy = greater(total, splat(VARIANCE_FLOOR));
    const vec ratio = pick(noisy, gap * gap * reciprocal(pick(noisy, total, splat(1.0f))), splat(0.0f));
    sums->squares = sums->squares + ratio;
    sums->product = mantissa_of(sums->product * (ratio + splat(1.0f)), &exponent);
    sums->exponents = sums->exponents + exponent;
}

INLINE void forward_part(const int noise, const int spread, const int simple, const lif *given, int64_t b, int64_t low, int64_t high,
                         float *h, float *k, heard *ear)
{
    const lif copied = without_options(simple, *given), *const p = &copied; /* no store can change it */
    double squares = 0.0, logs = 0.0;
    divergence sums = {splat(0.0f), splat(1.0f), splat(0.0f)};
    const spot start = spot_at(p, low);
    spot s = start;
    for (; s.i < high; advance(p, &s)) {
        const int64_t place = place_of_step(p, 0, b) + s.place;
        store(h + s.i - low, load_or_zero(p->membrane0, place, s.lanes));
        store(k + s.i - low, load_or_zero(p->variance0, place, s.lanes));
    }
    for (int64_t t = 0; t < p->steps; t++) {
        const noise_key key = key_of(p->seed, (uint64_t)(p->first_step + t), (uint64_t)b);
        const uint16_t *before = bits_before(p, t, b);
        uint16_t *now = bits_before(p, t + 1, b);
        const int64_t step = place_of_step(p, t, b), ahead = place_of_step(p, t + 1 < p->steps, 0);
        vec other = splat(0.0f);
        if (p->weight) hear_step(p, ear, before, 1);
        for (s = start; s.i < high; advance(p, &s)) {
            const int64_t place = step + s.place;
            const mask last = bits_at(before, s.i);
            if (simple) s.lanes = LANES;
            const vec threshold = load(p->threshold + s.channel), decay = load(p->decay + s.channel);
            PREFETCH(p->mean + place + ahead);
            vec arriving = load_some(p->mean + place, s.lanes), membrane = load(h + s.i - low), total = splat(0.0f);
            if (p->weight) arriving = load(ear->product + s.i) + arriving;
            if (p->to_zero) membrane = decay * (membrane * (splat(1.0f) - numbers_of(last))) + arriving;
            else {
                membrane = decay * membrane + arriving;
                membrane = pick(last, membrane - threshold, membrane);
            }
            store(h + s.i - low, membrane);
            const vec gap = membrane - threshold;
            if (spread != NO_SPREAD) {
                const vec variance = next_variance(spread, p, ear, t, b, &s, load(k + s.i - low), last);
                store(k + s.i - low, variance);
                total = variance + splat(p->base);
                if (p->total) store_some(p->total + place, total, s.lanes);
                if (p->sums) add_ratio(&sums, pick(first_bits(s.lanes), gap, splat(0.0f)), total);
            }
            mask fired;
            if (spread == NO_SPREAD || noise == NO_NOISE) fired = at_least(gap, splat(0.0f));
            else {
                vec signed_square;
                if (noise == DRAWN) signed_square = draw(&key, s.i, &other) * splat(p->scale);
                else {
                    const vec epsilon = load_some(p->noise + place, s.lanes);
                    signed_square = epsilon * magnitude(epsilon);
                }
                fired = at_least(total * signed_square, -(gap * magnitude(gap)));
            }
            fired &= first_bits(s.lanes);
            set_bits(now, s.i, fired);
            store_some(p->spikes + place, numbers_of(fired), s.lanes);
            if (p->halves) store_halves((uint16_t *)p->gap + place, gap, s.lanes);
            else if (p->gap) store_some((float *)p->gap + place, gap, s.lanes);
        }
        if (p->sums) {
            squares += (double)total_of(sums.squares);
            logs += (double)total_of(sums.exponents);
            sums.squares = sums.exponents = splat(0.0f);
        }
    }
    for (s = start; s.i < high; advance(p, &s)) {
        const int64_t place = place_of_step(p, 0, b) + s.place;
        store_some(p->membrane + place, load(h + s.i - low), s.lanes);
        if (p->variance) store_some(p->variance + place, load(k + s.i - low), s.lanes);
    }
    if (p->sums) {
        p->sums[2 * b] += 0.5 * (logs * 0.6931471805599453 + (double)total_of(log_of(sums.product)));
        p->sums[2 * b + 1] += squares;
    }
}

INLINE int64_t part_of(const lif *p)
{
    const int64_t all = p->pixels * padded_of(p);
    return p->weight || all < PART ? all : PART;
}

static heard ear_of(const lif *p)
{
    const size_t padded = (size_t)padded_of(p);
    if (!p->weight) return (heard){0};
    return (heard){.list = room_of((padded + LANES) * sizeof(int32_t)), .product = room_of(padded * sizeof(float)),
                   .scatter = room_of(padded * sizeof(float))};
}

static void close_ear(heard *h)
{
    close_room(h->list);
    close_room(h->product);
    close_room(h->scatter);
}

INLINE void forward_kind(const int noise, const int spread, const lif *p, int64_t begin, int64_t end)
{
    const int64_t all = p->pixels * padded_of(p), part = part_of(p);
    float *state = room_of((size_t)(2 * part) * sizeof *state);
    heard ear = ear_of(p);
    for (int64_t b = begin; b < end; b++)
        for (int64_t low = 0; low < all; low += part) {
            const int64_t high = low + part < all ? low + part : all;
            if (spread != MAP && is_simple(p)) forward_part(noise, spread, 1, p, b, low, high, state, state + part, &ear);
            else forward_part(noise, spread, 0, p, b, low, high, state, state + part, &ear);
        }
    close_ear(&ear);
    close_room(state);
}

static void forward_silent(const lif *p, int64_t begin, int64_t end) { forward_kind(NO_NOISE, NO_SPREAD, p, begin, end); }
static void forward_mean_product(const lif *p, int64_t begin, int64_t end) { forward_kind(NO_NOISE, PRODUCT, p, begin, end); }
static void forward_mean_map(const lif *p, int64_t begin, int64_t end) { forward_kind(NO_NOISE, MAP, p, begin, end); }
static void forward_drawn_product(const lif *p, int64_t begin, int64_t end) { forward_kind(DRAWN, PRODUCT, p, begin, end); }
static void forward_drawn_map(const lif *p, int64_t begin, int64_t end) { forward_kind(DRAWN, MAP, p, begin, end); }
static void forward_given_product(const lif *p, int64_t begin, int64_t end) { forward_kind(GIVEN, PRODUCT, p, begin, end); }
static void forward_given_map(const lif *p, int64_t begin, int64_t end) { forward_kind(GIVEN, MAP, p, begin, end); }

INLINE int noise_of(const lif *p) { return p->drawn ? DRAWN : p->noise ? GIVEN : NO_NOISE; }
INLINE int spread_of(const lif *p) { return !p->activity ? NO_SPREAD : p->gain ? PRODUCT : MAP; }

/* Samples begin … end − 1. */
EXPORT void CORE(lif_forward)(const lif *p, int64_t begin, int64_t end)
{
    static void (*const kinds[3][3])(const lif *, int64_t, int64_t) = {
        {forward_silent, forward_silent, forward_silent},
        {forward_mean_product, forward_drawn_product, forward_given_product},
        {forward_mean_map, forward_drawn_map, forward_given_map}};
    kinds[spread_of(p)][noise_of(p)](p, begin, end);
}

/* ε|ε| of all neurons, [steps][batch][pixels][channels], as the passes draw it. */
EXPORT void CORE(squares_of_noise)(const lif *p, float *out, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; b++)
        for (int64_t t = 0; t < p->steps; t++) {
            const noise_key key = key_of(p->seed, (uint64_t)(p->first_step + t), (uint64_t)b);
            vec other = splat(0.0f);
            for (spot s = spot_at(p, 0); s.i < p->pixels * padded_of(p); advance(p, &s))
                store_some(out + place_of_step(p, t, b) + s.place, draw(&key, s.i, &other) * splat(p->scale), s.lanes);
        }
}

/* ---------------------------------------------------------------- backwards */

/* ∂o/∂h* of an estimator: its factor times φ(z)/κ. `square` is ε|ε| of those that read the noise. */
INLINE vec slope_of(const int estimator, const lif_grads *p, vec gap, vec z, vec rate, mask fired, vec square)
{
    const vec option = splat(p->option);
    vec cdf;
    if (estimator == STRAIGHT) return density(z) * rate;
    if (estimator == SURROGATE) {
        const vec inverse = splat(1.0f / p->option);
        return density(gap * inverse) * inverse;
    }
    const vec signed_z = pick(fired, z, -z);
    if (estimator == WEIGHTED || estimator == LOW_VARIANCE) {
        const vec ratio = inverse_mills(signed_z, &cdf) * rate;
        if (estimator == WEIGHTED) return ratio * pick(fired, option, splat(1.0f) - option);
        return pick(greater(signed_z, splat(0.0f)), ratio, splat(0.0f)); /* p is 1 for z > 0: the likelier outcome */
    }
    if (estimator == ANALYTIC) { /* φ(z) tanh(P/2k)/(2P), P the probability of what was drawn */
        inverse_mills(signed_z, &cdf);
        const vec x = cdf * reciprocal(option + option), square_x = x * x;
        const vec series = splat(1.0f) + square_x * (splat(-1.0f / 3.0f) + square_x * splat(2.0f / 15.0f));
        const vec e = exp_of(x * splat(-2.0f)), large = (splat(1.0f) - e) * reciprocal((splat(1.0f) + e) * x);
        const vec ratio = pick(greater(splat(0.03f), x), series, large);
        return density(z) * ratio * reciprocal(splat(4.0f) * option) * rate;
    }
    /* S_k'(x) dx/dF φ(z), with x = F − 1 + u, or ln(F/(1−F)) + ln(u/(1−u)) */
    const vec size = root(magnitude(square));
    const vec epsilon = pick(greater(splat(0.0f), square), -size, size);
    vec x, chain, drawn, upper;
    if (estimator == UNIFORM) {
        inverse_mills(z, &cdf);
        inverse_mills(-epsilon, &drawn);
        x = cdf - drawn;
        chain = density(z);
    } else {
        chain = inverse_mills(-magnitude(z), &cdf);
        inverse_mills(magnitude(z), &upper);
        chain = chain * reciprocal(upper);
        const vec logit = log_of(upper) - log_of(larger(cdf, splat(1e-37f)));
        inverse_mills(-size, &cdf);
        inverse_mills(size, &upper);
        const vec other = log_of(upper) - log_of(larger(cdf, splat(1e-37f)));
        x = pick(greater(splat(0.0f), z), -logit, logit) + pick(greater(splat(0.0f), epsilon), -other, other);
    }
    const vec e = exp_of(-(magnitude(x) * reciprocal(option))), below = splat(1.0f) + e;
    return e * reciprocal(below * below * option) * chain * rate;
}

/* What the parts of a backward pass keep: of each neuron ∂L/∂h* and ∂L/∂κ² of the step behind, what came through the
   recurrence, κ² of all steps, and sums over time; of a step and sample the slopes, z/κ and what the regulariser pulls. */
typedef struct {
    float *h, *v, *through, *through_v, *total, *slope, *ratio, *pull, *gain, *decay, *threshold, *own;
    heard ear;
    int64_t samples; /* that are taken together now */
} trail;

static trail trail_of(const lif_grads *g, int64_t part, int64_t samples)
{
    const lif *p = &g->of;
    const size_t size = (size_t)(part * samples) * sizeof(float);
    const int spread = spread_of(p) != NO_SPREAD;
    return (trail){.h = room_of(size), .v = room_of(size), .through = room_of(size), .through_v = room_of(size),
                   .total = spread ? room_of(size * (size_t)p->steps) : NULL, .samples = samples,
                   .slope = room_of((size_t)part * sizeof(float)), .ratio = room_of((size_t)part * sizeof(float)),
                   .pull = room_of((size_t)part * sizeof(float)),
                   .gain = g->by_gain ? room_of((size_t)(samples * p->terms * padded_of(p)) * sizeof(float)) : NULL,
                   .decay = g->by_decay ? room_of(size) : NULL, .threshold = g->by_threshold ? room_of(size) : NULL,
                   .own = g->by_own ? room_of(size) : NULL, .ear = ear_of(p)};
}

static void close_trail(trail *w)
{
    float *const all[] = {w->h,     w->v,    w->through, w->through_v, w->total,     w->slope,
                          w->ratio, w->pull, w->gain,    w->decay,     w->threshold, w->own};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) close_room(all[n]);
    close_ear(&w->ear);
}

/* κ² of the decision for all steps, as it was computed forwards. */
INLINE void retrace(const int spread, const lif *given, trail *w, int64_t b, int64_t low, int64_t high, int64_t offset,
                    int64_t count)
{
    const lif copied = *given, *const p = &copied;
    float *k = w->v + offset; /* its use begins after this */
    const spot start = spot_at(p, low);
    spot s = start;
    for (; s.i < high; advance(p, &s))
        store(k + s.i - low, load_or_zero(p->variance0, place_of_step(p, 0, b) + s.place, s.lanes));
    for (int64_t t = 0; t < p->steps; t++) {
        const uint16_t *before = bits_before(p, t, b);
        float *total = w->total + t * count + offset;
        if (p->weight) hear_step(p, &w->ear, before, 0);
        for (s = start; s.i < high; advance(p, &s)) {
            const vec at = load(k + s.i - low);
            const vec variance = next_variance(spread, p, &w->ear, t, b, &s, at, bits_at(before, s.i));
            store(k + s.i - low, variance);
            store(total + s.i - low, variance + splat(p->base));
        }
    }
}

/* What reaches o[t] through the next step: the reset, recurrent means, and their variances. */
INLINE vec through_next(const int spread, const lif_grads *g, const trail *w, int64_t n, const spot *s, mask fired,
                        vec membrane, vec total, float heard_total)
{
    const lif *p = &g->of;
    const vec h = load(w->h + n), decay = load(p->decay + s->channel);
    vec o;
    if (p->to_zero) {
        o = -(decay * membrane * h);
        if (spread != NO_SPREAD) o = o - decay * decay * (total - splat(p->base)) * load(w->v + n);
    } else o = -(load(p->threshold + s->channel) * h);
    if (p->weight) o = o + load(w->through + n);
    if (p->own) {
        const vec others = splat(heard_total) - load(p->own + s->channel) * load(w->v + n);
        o = o + pick(fired, others + others, splat(0.0f));
    }
    if (p->each) o = o + pick(fired, splat(2.0f) * load(w->through_v + n), splat(0.0f));
    return o;
}

/* Products with recurrent weights, for all samples at once. */
static void through_weights(const lif_grads *g, trail *w, int64_t samples)
{
    const lif *p = &g->of;
    const int64_t padded = padded_of(p);
    if (!p->weight) return;
    const dense means = {.inputs = p->channels, .outputs = padded, .x_step = padded, .out_step = padded,
                         .x = w->h, .panels = g->panels, .out = w->through, .exact = 0};
    dense_rows(&means, 0, samples);
    if (p->each) {
        dense variances = means;
        variances.x = w->v;
        variances.panels = g->each_panels;
        variances.out = w->through_v;
        dense_rows(&variances, 0, samples);
    }
}

INLINE float heard_variance(const lif *p, const float *v)
{
    vec sum = splat(0.0f);
    if (!p->own) return 0.0f;
    for (int64_t c = 0; c < padded_of(p); c += LANES) sum = multiply_add(load(p->own + c), load(v + c), sum);
    return total_of(sum);
}

INLINE void add_to(float *at, vec more)
{
    store(at, load(at) + more);
}

/* A pixel's gradients of κ², up to the place `s`, reach the activity and the gain of every term. */
INLINE void through_products(const lif_grads *g, const trail *w, int64_t t, int64_t b, const spot *s, int64_t low,
                             int64_t offset, int64_t count)
{
    const lif *p = &g->of;
    const int64_t padded = padded_of(p), begin = s->i - s->channel < low ? low : s->i - s->channel;
    const int64_t channel = s->channel - (s->i - begin);
    const float *active = activity_of(p, t, b, s), *v = w->v + offset + begin - low;
    float *sums = w->gain ? w->gain + offset / (count / w->samples) * p->terms * padded + channel : NULL;
    for (int64_t k = 0; k < p->terms; k++) {
        vec sum = splat(0.0f);
        for (int64_t i = 0; i <= s->i - begin; i += LANES) {
            sum = multiply_add(load(v + i), load(p->gain + k * padded + channel + i), sum);
            if (sums) store(sums + k * padded + i, multiply_add(load(v + i), splat(active[k]), load(sums + k * padded + i)));
        }
        if (g->by_activity) g->by_activity[active - p->activity + k] += total_of(sum);
    }
}

/* What a step needs of its gaps. It is a loop of its own because its operations wait for one another: a processor overlaps
   more of these short turns than of turns with everything that follows. */
INLINE void take_slopes(const int estimator, const int spread, const int simple, const lif_grads *g, const trail *w,
                        int64_t t, int64_t b, int64_t low, int64_t high, const float *totals)
{
    const lif *const p = &g->of;
    const uint16_t *now = bits_before(p, t + 1, b);
    const noise_key key = key_of(p->seed, (uint64_t)(p->first_step + t), (uint64_t)b);
    const vec twice = splat(2.0f * g->by_quadratic), by_log = splat(g->by_log);
    const int64_t step = place_of_step(p, t, b);
    vec other = splat(0.0f);
    for (spot s = spot_at(p, low); s.i < high; advance(p, &s)) {
        if (simple) s.lanes = LANES;
        const mask there = first_bits(s.lanes);
        const vec gap = load_gap(p, p->gap, step + s.place, s.lanes);
        if (g->by_spikes) PREFETCH(g->by_spikes + step + s.place);
        PREFETCH(g->h_grads + step + s.place);
        vec rate = splat(0.0f), z = splat(0.0f), square = splat(0.0f);
        if (spread != NO_SPREAD) {
            const vec total = load(totals + s.i - low);
            const mask noisy = greater(total, splat(VARIANCE_FLOOR)) & there;
            rate = pick(noisy, one_by_root(pick(noisy, total, splat(1.0f))), splat(0.0f));
            z = gap * rate;
            const vec ratio = z * rate;
            vec pull = twice * ratio;
            if (g->by_log != 0.0f) pull = pull + by_log * ratio * reciprocal(multiply_add(z, z, splat(1.0f)));
            store(w->ratio + s.i - low, ratio);
            store(w->pull + s.i - low, pull);
        }
        if (estimator == UNIFORM || estimator == LOGISTIC) {
            if (p->drawn) square = draw(&key, s.i, &other) * splat(p->scale);
            else if (p->noise) {
                const vec epsilon = load_some(p->noise + step + s.place, s.lanes);
                square = epsilon * magnitude(epsilon);
            }
        }
        store(w->slope + s.i - low, slope_of(estimator, g, gap, z, rate, bits_at(now, s.i), square));
    }
}

/* Whether nothing but currents and activities has gradients. */
INLINE int is_simple_backwards(const lif_grads *g)
{
    return is_simple(&g->of) && !g->by_decay && !g->by_threshold && !g->by_own && !g->by_gap && !g->v_grads;
}

INLINE void backward_step(const int estimator, const int spread, const int simple, const lif_grads *given,
                          const trail *trails, int64_t t, int64_t b, int64_t low, int64_t high, int64_t offset,
                          int64_t count)
{
    lif_grads copied = *given;
    trail copied_trail = *trails;
    copied.of = without_options(simple, copied.of);
    if (simple) {
        copied.by_gap = NULL;
        copied.v_grads = NULL;
        copied_trail.decay = copied_trail.threshold = copied_trail.own = NULL;
    }
    const lif_grads *const g = &copied; /* no store can change them */
    const trail *const w = &copied_trail;
    const lif *const p = &g->of;
    const int64_t step = place_of_step(p, t, b), words = p->pixels * (padded_of(p) / WORD) * p->batch;
    const uint16_t *before = bits_before(p, t, b), *now = before + words;
    const int final = t == p->steps - 1;
    const int64_t ahead = t ? p->batch * p->pixels * p->channels : 0; /* parts are too short for a processor to guess */
    const float *totals = w->total + t * count + offset, heard_total = final ? 0.0f : heard_variance(p, w->v + offset);
    const float fired_before = p->own ? (float)count_bits(before, padded_of(p) / WORD) : 0.0f;
    vec by_base = splat(0.0f), gap_before = splat(0.0f);
    take_slopes(estimator, spread, simple, g, w, t, b, low, high, totals);
    for (spot s = spot_at(p, low); s.i < high; advance(p, &s)) {
        if (simple) s.lanes = LANES;
        const int64_t n = offset + s.i - low, place = step + s.place;
        const mask fired = bits_at(now, s.i), last = bits_at(before, s.i), there = first_bits(s.lanes);
        const vec decay = load(p->decay + s.channel), threshold = load(p->threshold + s.channel);
        vec h, v = splat(0.0f), o = load_or_zero(g->by_spikes, place, s.lanes);
        if (final) {
            h = load_or_zero(g->by_membrane, place - step + place_of_step(p, 0, b), s.lanes);
            if (spread != NO_SPREAD) v = load_or_zero(g->by_variance, place - step + place_of_step(p, 0, b), s.lanes);
        } else {
            vec membrane = splat(0.0f), total = splat(0.0f);
            if (p->to_zero) {
                membrane = load_gap(p, p->gap, place, s.lanes) + threshold;
                if (spread != NO_SPREAD) total = load(totals + s.i - low);
            }
            o = o + through_next(spread, g, w, n, &s, fired, membrane, total, heard_total);
            h = decay * load(w->h + n);
            if (spread != NO_SPREAD) v = decay * decay * load(w->v + n);
            if (p->to_zero) {
                h = pick(fired, splat(0.0f), h);
                v = pick(fired, splat(0.0f), v);
            }
        }
        PREFETCH((const char *)p->gap + (place - ahead) * (p->halves ? 2 : 4));
        const vec moved = pick(there, load(w->slope + s.i - low) * o, splat(0.0f));
        vec decided = moved;
        if (g->by_gap) decided = decided + load_gap(p, g->by_gap, place, s.lanes);
        if (spread != NO_SPREAD) {
            const vec ratio = load(w->ratio + s.i - low), pull = load(w->pull + s.i - low);
            decided = decided + pull;
            const vec both = estimator == SURROGATE ? pull : moved + pull;
            const vec decided_v = both * ratio * splat(-0.5f);
            v = v + decided_v;
            by_base = by_base + decided_v;
            if (g->v_grads) store_some(g->v_grads + place, v, s.lanes);
            if (w->own) add_to(w->own + n, v * (splat(fired_before) - numbers_of(last)));
        }
        h = h + decided;
        if (w->threshold) {
            vec through = -decided;
            if (!p->to_zero) through = through - pick(last, h, splat(0.0f));
            add_to(w->threshold + n, through);
        }
        if (w->decay) {
            const int64_t earlier = place - (t ? p->batch * p->pixels * p->channels : 0);
            if (t) gap_before = load_gap(p, p->gap, earlier, s.lanes) + threshold;
            else gap_before = load_or_zero(p->membrane0, place_of_step(p, 0, b) + s.place, s.lanes);
            vec more = h * gap_before;
            if (spread != NO_SPREAD) {
                vec k = load_or_zero(p->variance0, place_of_step(p, 0, b) + s.place, s.lanes);
                if (t) k = load(totals - count + s.i - low) - splat(p->base);
                more = more + splat(2.0f) * decay * v * k;
            }
            if (p->to_zero) more = pick(last, splat(0.0f), more);
            add_to(w->decay + n, pick(there, more, splat(0.0f)));
        }
        store(w->h + n, pick(there, h, splat(0.0f)));
        store(w->v + n, pick(there, v, splat(0.0f)));
        store_some(g->h_grads + place, h, s.lanes);
        if (spread == PRODUCT && (s.channel + LANES == padded_of(p) || s.i + LANES >= high))
            through_products(g, w, t, b, &s, low, offset, count);
    }
    if (g->by_base) g->by_base[b] += (double)total_of(by_base);
}

/* Gradients of the state before the first step. */
INLINE void backward_first(const int spread, const lif_grads *g, const trail *w, int64_t b, int64_t low, int64_t high,
                           int64_t offset)
{
    const lif *p = &g->of;
    const uint16_t *before = bits_before(p, 0, b);
    const float heard_total = heard_variance(p, w->v + offset);
    for (spot s = spot_at(p, low); s.i < high; advance(p, &s)) {
        const int64_t n = offset + s.i - low, place = place_of_step(p, 0, b) + s.place;
        const mask fired = bits_at(before, s.i);
        const vec decay = load(p->decay + s.channel), membrane = load_or_zero(p->membrane0, place, s.lanes);
        const vec kept = p->to_zero ? splat(1.0f) - numbers_of(fired) : splat(1.0f);
        const vec total = load_or_zero(p->variance0, place, s.lanes) + splat(p->base);
        if (g->first_membrane) store_some(g->first_membrane + place, decay * kept * load(w->h + n), s.lanes);
        if (g->first_variance) store_some(g->first_variance + place, decay * decay * kept * load(w->v + n), s.lanes);
        if (g->first_spikes)
            store_some(g->first_spikes + place, through_next(spread, g, w, n, &s, fired, membrane, total, heard_total),
                       s.lanes);
    }
}

/* Adds sums over time for each channel of a sample. Terms of many pixels cancel, so they are added as doubles. */
static void add_channels(const lif *p, const float *from, double *to, int64_t b, int64_t low, int64_t high)
{
    if (!to) return;
    for (spot s = spot_at(p, low); s.i < high; advance(p, &s))
        for (int lane = 0; lane < LANES; lane++) to[b * padded_of(p) + s.channel + lane] += from[s.i - low + lane];
}

INLINE void backward_part(const int estimator, const int spread, const lif_grads *g, trail *w, int64_t begin,
                          int64_t end, int64_t low, int64_t high)
{
    const lif *p = &g->of;
    const int64_t width = high - low, count = (end - begin) * width;
    float *const sums[3] = {w->decay, w->threshold, w->own};
    double *const to[3] = {g->by_decay, g->by_threshold, g->by_own};
    const int64_t gains = p->terms * padded_of(p);
    const int common = spread != MAP && (estimator == STRAIGHT || estimator == WEIGHTED || estimator == SURROGATE);
    w->samples = end - begin;
    for (int n = 0; n < 3; n++)
        if (sums[n]) memset(sums[n], 0, (size_t)count * sizeof(float));
    if (w->gain) memset(w->gain, 0, (size_t)((end - begin) * gains) * sizeof(float));
    if (spread != NO_SPREAD)
        for (int64_t b = begin; b < end; b++) retrace(spread, p, w, b, low, high, (b - begin) * width, count);
    for (int64_t t = p->steps - 1; t >= 0; t--) {
        if (t < p->steps - 1) through_weights(g, w, end - begin);
        for (int64_t b = begin; b < end; b++)
            if (common && is_simple_backwards(g))
                backward_step(estimator, spread, 1, g, w, t, b, low, high, (b - begin) * width, count);
            else backward_step(estimator, spread, 0, g, w, t, b, low, high, (b - begin) * width, count);
    }
    if (g->first_spikes) through_weights(g, w, end - begin);
    for (int64_t b = begin; b < end; b++) {
        backward_first(spread, g, w, b, low, high, (b - begin) * width);
        for (int64_t i = 0; w->gain && i < gains; i += LANES)
            add_to(g->by_gain + b * gains + i, load(w->gain + (b - begin) * gains + i));
        for (int n = 0; n < 3; n++)
            if (sums[n]) add_channels(p, sums[n] + (b - begin) * width, to[n], b, low, high);
    }
}

/* Samples begin … end − 1; a recurrent layer takes a few of them together, for its products. */
INLINE void backward_kind(const int estimator, const int spread, const lif_grads *g, int64_t begin, int64_t end)
{
    const lif *p = &g->of;
    const int64_t all = p->pixels * padded_of(p), most = p->weight ? all : (1 << 16) / p->steps / (2 * WORD) * 2 * WORD;
    const int64_t limited = most < 4 * WORD ? 4 * WORD : most < PART ? most : PART;
    const int64_t part = p->weight || all < limited ? all : limited, together = p->weight ? TOGETHER : 1;
    trail w = trail_of(g, part, together);
    for (int64_t b = begin; b < end; b += together)
        for (int64_t low = 0; low < all; low += part)
            backward_part(estimator, spread, g, &w, b, b + together < end ? b + together : end, low,
                          low + part < all ? low + part : all);
    close_trail(&w);
}

#define BACKWARD(name, estimator)                                                                                      \
    static void backward_##name(const lif_grads *g, int64_t begin, int64_t end)                                        \
    {                                                                                                                  \
        if (spread_of(&g->of) == PRODUCT) backward_kind(estimator, PRODUCT, g, begin, end);                            \
        else if (spread_of(&g->of) == MAP) backward_kind(estimator, MAP, g, begin, end);                               \
        else backward_kind(estimator, NO_SPREAD, g, begin, end);                                                       \
    }
BACKWARD(straight, STRAIGHT)
BACKWARD(weighted, WEIGHTED)
BACKWARD(low_variance, LOW_VARIANCE)
BACKWARD(analytic, ANALYTIC)
BACKWARD(uniform, UNIFORM)
BACKWARD(logistic, LOGISTIC)
BACKWARD(surrogate, SURROGATE)

EXPORT void CORE(lif_backward)(const lif_grads *g, int64_t begin, int64_t end)
{
    static void (*const kinds[])(const lif_grads *, int64_t, int64_t) = {
        backward_straight, backward_weighted, backward_low_variance, backward_analytic,
        backward_uniform,  backward_logistic, backward_surrogate};
    kinds[g->estimator](g, begin, end);
}
