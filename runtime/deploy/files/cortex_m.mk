# make: build firmware.elf;  make run RECORDINGS="a.csv b.csv": run them in qemu;  make size: size of the network alone.
# CPU=cortex-m3 builds for a processor without floating point (ARM's MPS2 board with the image AN385).
GCC   ?= arm-none-eabi-gcc
CPU   ?= cortex-m4
ifeq ($(CPU),cortex-m4)
CORE  := -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16
BOARD := mps2-an386
else
CORE  := -mcpu=$(CPU) -mthumb -mfloat-abi=soft
BOARD := mps2-an385
endif
FLAGS := $(CORE) -std=c99 -O2 -ffp-contract=off -ffunction-sections -fdata-sections
QEMU  := qemu-system-arm -machine $(BOARD) -display none -monitor none -serial none -icount shift=0

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
