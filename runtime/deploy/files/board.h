/* The board: a counter of instructions. */
#include <stdint.h>

uint64_t board_count(void);
