# make: builds ./network. Without -ffp-contract=off a fused multiply-add would change the bits.
CFLAGS ?= -O2

network: main.c network.c network.h network_weights.h
	$(CC) -std=c99 $(CFLAGS) -ffp-contract=off -o $@ main.c network.c

clean:
	rm -f network

.PHONY: clean
