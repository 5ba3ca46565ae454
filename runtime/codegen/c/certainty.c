/* No exponential: sums of doubles in the order of the members, which every language rounds alike. */
int network_possible(const network_state *n, uint8_t possible[NETWORK_CLASSES])
{
    const uint32_t step = n->steps < NETWORK_MARGINS ? n->steps : NETWORK_MARGINS;
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    double total[NETWORK_CLASSES], top;
    int count = 0;
    network_logits(n, logits);
    for (int c = 0; c < NETWORK_CLASSES; c++) {
        total[c] = (double)logits[0][c];
        for (int m = 1; m < NETWORK_MEMBERS; m++) total[c] += (double)logits[m][c];
    }
    top = total[0];
    for (int c = 1; c < NETWORK_CLASSES; c++)
        if (total[c] > top) top = total[c];
    for (int c = 0; c < NETWORK_CLASSES; c++) possible[c] = top - total[c] <= MARGINS[step - 1][0];
    possible[network_decision(n)] = 1;
    for (int c = 0; c < NETWORK_CLASSES; c++) count += possible[c];
    return count;
}

int network_answer(const network_state *n)
{
    uint8_t possible[NETWORK_CLASSES];
    return network_possible(n, possible) == 1 ? network_decision(n) : NETWORK_UNSURE;
}
