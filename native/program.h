/* A program: a table of integers with one row for each instruction, and an order that lists the rows processed
   together.

   All positions in it were checked against the sizes of the arrays before (runtime/codegen/bounds.py), so kernels
   check no bounds. `generated.h` has the codes of the rows, the columns of each kind (LINEAR_weights and so on) and
   the neurons; it is made from the definitions in Python. */
#ifndef AXONNX_PROGRAM_H
#define AXONNX_PROGRAM_H

/* A function name of the core in this build, for example axonnx_run_avx2. */
#ifndef ISA
#define ISA plain
#endif
#ifndef CORE
#define CORE(name) CORE_OF(name, ISA)
#define CORE_OF(name, isa) CORE_NAMED(name, isa)
#define CORE_NAMED(name, isa) axonnx_##name##_##isa
#endif
#ifndef EXPORT
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif
#endif

typedef struct {
    const int32_t *table;  /* COLUMNS numbers for each row; repeated for each of several `slots` */
    const int32_t *order;  /* TURN numbers for each turn */
    const int32_t *groups; /* the turns at which groups begin, then the end of the last */
    const int32_t *tables; /* addresses for moves */
    const scalar *constants;
    const int8_t *weights; /* all widths; each synapse begins at a multiple of 64 bytes */
    scalar *memory;
    int32_t *events; /* lists of active elements */
    uint16_t *bits;  /* spikes that are not read as numbers, at 1/16 of their position in memory */
    int16_t *packed; /* inputs of a dense layer */
    int64_t rows, turns, parts, at_start, kept, entering, traced, scale, largest;
    int64_t slots;   /* time steps that a group of turns processes before the next group; 1: single steps */
    int64_t padding; /* sizes of buffers are multiples of it */
    int64_t dense_from[4]; /* percentages of active inputs: 16 bits for several rows, one row; 8 bits likewise */
} program;

/* One turn: a single row, or synapses, the operations after them and neurons. −1 marks a missing part. */
enum {
    TURN_ROW, TURN_MORE, TURN_FIRE, TURN_LEAN, TURN_THEN, TURN_KEPT = TURN_THEN + CHAIN,
    TURN = TURN_KEPT + CHAIN + 1
};

INLINE const int32_t *row_of(const program *p, int32_t number)
{
    return number < 0 ? NULL : p->table + (int64_t)number * COLUMNS;
}
#endif
