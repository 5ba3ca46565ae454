/* Neurons, one at a time. Each operation is rounded to float32, in the order that the operator defines. */

static inline float magnitude(float x)
{
    return x < 0.0f ? -x : x;
}

/* 1 where h ≥ θ */
static inline float fires(float h, float threshold)
{
    return h >= threshold ? 1.0f : 0.0f;
}

/* 1 where h + κ ε ≥ θ, decided on squares: κ² (ε|ε|) ≥ −(h − θ)|h − θ| */
static inline float fires_noisily(float h, float variance, float noise, float threshold)
{
    const float gap = h - threshold, needed = -(gap * magnitude(gap));
    return variance * (noise * magnitude(noise)) >= needed ? 1.0f : 0.0f;
}

/* o = 1 where I ≥ θ */
static inline void heaviside(float *o, float current, float threshold)
{
    *o = fires(current, threshold);
}

/* o = 1 where I + κ ε ≥ θ */
static inline void stochastic_heaviside(float *o, float current, float variance, float noise, float threshold)
{
    *o = fires_noisily(current, variance, noise, threshold);
}

/* h' = β h + I − θ o;   o' = 1 where h' ≥ θ */
static inline void lif(float *h, float *o, float current, float membrane, float spikes, float decay, float threshold)
{
    *h = decay * membrane + current - threshold * spikes;
    *o = fires(*h, threshold);
}

/* h' = β (h (1 − o)) + I;   o' = 1 where h' ≥ θ */
static inline void lif_to_zero(float *h, float *o, float current, float membrane, float spikes, float decay,
                               float threshold)
{
    *h = decay * (membrane * (1.0f - spikes)) + current;
    *o = fires(*h, threshold);
}

/* h' = β h + I − θ o;   v' = β² v + Var I;   o' = 1 where h' + κ ε ≥ θ with κ² = v' + σ_base² */
static inline void stochastic_lif(float *h, float *v, float *o, float current, float arriving, float noise,
                                  float membrane, float variance, float spikes, float decay, float threshold,
                                  float base)
{
    *h = decay * membrane + current - threshold * spikes;
    *v = decay * decay * variance + arriving;
    *o = fires_noisily(*h, *v + base, noise, threshold);
}

/* h' = β (h (1 − o)) + I;   v' = β² (v (1 − o)) + Var I;   o' as above */
static inline void stochastic_lif_to_zero(float *h, float *v, float *o, float current, float arriving, float noise,
                                          float membrane, float variance, float spikes, float decay, float threshold,
                                          float base)
{
    const float kept = 1.0f - spikes;
    *h = decay * (membrane * kept) + current;
    *v = decay * decay * (variance * kept) + arriving;
    *o = fires_noisily(*h, *v + base, noise, threshold);
}

/* i' = α i + I */
static inline void leaky_current(float *y, float current, float synaptic, float decay)
{
    *y = decay * synaptic + current;
}

/* β (h (1 − z o) − r o) + I: what the last spike left of the membrane decays */
static inline float charged(float h, float o, float current, float decay, float zeroed, float taken)
{
    return decay * (h * (1.0f - zeroed * o) - taken * o) + current;
}

/* x (1 − Z o) − R o: a reset one step after the spike */
static inline float reset_late(float x, float o, float zeroed, float taken)
{
    return x * (1.0f - zeroed * o) - taken * o;
}

/* h' = (β (h (1 − z o) − r o) + I) (1 − Z o) − R o;   o' = 1 where h' ≥ θ */
static inline void general_lif(float *h, float *o, float current, float membrane, float spikes, float decay,
                               float threshold, float zeroed, float taken, float late_zeroed, float late_taken)
{
    *h = reset_late(charged(membrane, spikes, current, decay, zeroed, taken), spikes, late_zeroed, late_taken);
    *o = fires(*h, threshold);
}

/* a' = δ a + c h + b o;   h' as above with I − g a';   o' = 1 where h' ≥ θ + f a' */
static inline void adaptive_lif(float *h, float *a, float *o, float current, float membrane, float spikes,
                                float adaptation, float decay, float threshold, float zeroed, float taken,
                                float late_zeroed, float late_taken, float adaptation_decay, float membrane_share,
                                float spike_share, float current_gain, float threshold_gain)
{
    const float adapted = adaptation_decay * adaptation + membrane_share * membrane + spike_share * spikes;
    const float x = charged(membrane, spikes, current, decay, zeroed, taken) - current_gain * adapted;
    *h = reset_late(x, spikes, late_zeroed, late_taken);
    *o = fires(*h, threshold + threshold_gain * adapted);
    *a = adapted;
}

/* h' = β h + I;   s' = s + h' */
static inline void leaky_sum(float *h, float *s, float current, float membrane, float total, float decay)
{
    *h = decay * membrane + current;
    *s = total + *h;
}
