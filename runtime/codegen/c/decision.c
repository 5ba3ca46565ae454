/* The class with the largest logit. */
int network_decision(const network_state *n)
{
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    int best = 0;
    network_logits(n, logits);
    for (int c = 1; c < NETWORK_CLASSES; c++)
        if (logits[0][c] > logits[0][best]) best = c;
    return best;
}
