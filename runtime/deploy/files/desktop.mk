# make: build ./network and check its arithmetic. Without -ffp-contract=off fused multiply-adds would change the bits. On
# x86-64 the core is built for three instruction sets; the processor decides at run time which one is used.
CFLAGS ?= -O2
FLAGS  := -std=gnu99 $(CFLAGS) -ffp-contract=off -Wno-psabi
CORES  := network_core.o

ifeq ($(shell $(CC) -dumpmachine | cut -d- -f1),x86_64)
CORES += network_core_avx2.o network_core_avx512.o
X86   := -DNETWORK_X86
endif

network: main.c network.o $(CORES)
	$(CC) $(FLAGS) -o $@ main.c network.o $(CORES)
	@$(EMULATOR) ./$@ --check || { rm -f $@; exit 1; }

network.o: network.c network.h network_weights.h
	$(CC) $(FLAGS) $(X86) -c -o $@ network.c

network_core.o: network_core.c
	$(CC) $(FLAGS) -c -o $@ network_core.c

network_core_avx2.o: network_core.c
	$(CC) $(FLAGS) -DISA=avx2 -mavx2 -c -o $@ network_core.c

network_core_avx512.o: network_core.c
	$(CC) $(FLAGS) -DISA=avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -c -o $@ network_core.c

clean:
	rm -f network *.o

.PHONY: clean
