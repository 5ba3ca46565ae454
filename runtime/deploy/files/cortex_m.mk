# make: build firmware.elf;  make run RECORDINGS="a.csv b.csv": run them in qemu;  make size: size of the network alone.
GCC   ?= arm-none-eabi-gcc
CORE  := -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16
FLAGS := $(CORE) -std=c99 -O2 -ffp-contract=off -ffunction-sections -fdata-sections
QEMU  := qemu-system-arm -machine mps2-an386 -display none -monitor none -serial none -icount shift=0

firmware.elf: main.c board.c board.h board.ld network.o network_core.o
	$(GCC) $(FLAGS) -DBOARD --specs=rdimon.specs -T board.ld -Wl,--gc-sections -o $@ main.c board.c network.o network_core.o

network.o: network.c network.h network_weights.h
	$(GCC) $(FLAGS) -c -o $@ network.c

network_core.o: network_core.c
	$(GCC) $(FLAGS) -c -o $@ network_core.c

run: firmware.elf
	@$(QEMU) -semihosting-config enable=on,target=native -kernel firmware.elf -append "$(RECORDINGS)"

size: network.o network_core.o
	@arm-none-eabi-size -A network.o network_core.o

clean:
	rm -f firmware.elf *.o

.PHONY: run size clean
