/* Start-up code for a Cortex-M4 with a floating-point unit, here ARM's MPS2 board with the image AN386. For another
   board, change the memory in board.ld. board_count only measures time. */
#include "board.h"

extern unsigned stack_top;
void _start(void);
void reset(void);

static void stop(void)
{
    for (;;) {}
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))&stack_top, reset, stop, stop, stop, stop, stop, 0, 0, 0, 0, stop, stop, 0, stop, stop,
};

#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88)
#define TIMER ((volatile uint32_t *)0x40000000) /* control, value, reload: counts down at 25 MHz */
#define INSTRUCTIONS_PER_TICK 40                /* if an emulator runs one instruction per nanosecond */

void reset(void)
{
    COPROCESSORS |= 0xFu << 20; /* the floating-point unit is off after a reset */
    __asm volatile("dsb\n isb");
    TIMER[2] = 0xFFFFFFFF;
    TIMER[1] = 0xFFFFFFFF;
    TIMER[0] = 1;
    _start();
}

uint64_t board_count(void)
{
    return (uint64_t)(0xFFFFFFFF - TIMER[1]) * INSTRUCTIONS_PER_TICK;
}
