/* e^x for x <= 0 with an error of about 1e-12: (e^(x / 4096))^4096 from its series. No spike depends on it. */
static double power_of_e(double x)
{
    const double y = x / 4096.0;
    double value = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y / 24.0)));
    if (x < -700.0) return 0.0;
    for (int i = 0; i < 12; i++) value *= value;
    return value;
}

/* The class with the largest mean of the members' softmax. */
int network_decision(const network_state *n)
{
    double mean[NETWORK_CLASSES] = {0.0};
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    int best = 0;
    network_logits(n, logits);
    for (int m = 0; m < NETWORK_MEMBERS; m++) {
        double sum = 0.0, power[NETWORK_CLASSES];
        float top = logits[m][0];
        for (int c = 1; c < NETWORK_CLASSES; c++)
            if (logits[m][c] > top) top = logits[m][c];
        for (int c = 0; c < NETWORK_CLASSES; c++) sum += power[c] = power_of_e((double)logits[m][c] - (double)top);
        for (int c = 0; c < NETWORK_CLASSES; c++) mean[c] += power[c] / sum;
    }
    for (int c = 1; c < NETWORK_CLASSES; c++)
        if (mean[c] > mean[best]) best = c;
    return best;
}
