/* A program: a table of integers, a row for each instruction, and an order that says which rows are taken together.

   All places in it have been checked against the sizes of the arrays before it comes here (runtime/codegen/bounds.py):
   kernels look at no bounds. `generated.h` has the codes of the rows and the columns of each kind, LINEAR_weights and so
   on, and the neurons: both are made from their definitions in Python. */
#ifndef AXONNX_PROGRAM_H
#define AXONNX_PROGRAM_H

/* A name of the core in this build: axonnx_run_avx2. */
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
    const int32_t *table;  /* COLUMNS numbers for each row; for each of `slots` time steps where there are several */
    const int32_t *order;  /* TURN numbers for each turn */
    const int32_t *groups; /* the turns at which groups begin; then where the last ends */
    const int32_t *tables; /* of addresses that moves gather from */
    const float *constants;
    const int8_t *weights; /* of every width, each synapse's from a multiple of 64 bytes on */
    float *memory;
    int32_t *events; /* lists of active elements */
    uint16_t *bits;  /* spikes that nobody reads as numbers, at a sixteenth of their place in memory */
    int16_t *packed; /* inputs of a dense layer */
    int64_t rows, turns, parts, at_start, kept, entering, traced, scale, largest;
    int64_t slots;   /* time steps that a group of turns takes before the next group does; 1: none are taken together */
    int64_t padding; /* sizes of buffers are multiples of it */
    int64_t dense_from[4]; /* per cent of active inputs: of 16 bits in several rows or one, of 8 bits in several or one */
} program;

/* One turn: a row; or synapses, what follows them, and neurons together. −1 where there is none. */
enum {
    TURN_ROW, TURN_MORE, TURN_FIRE, TURN_LEAN, TURN_THEN, TURN_KEPT = TURN_THEN + CHAIN,
    TURN = TURN_KEPT + CHAIN + 1
};

INLINE const int32_t *row_of(const program *p, int32_t number)
{
    return number < 0 ? NULL : p->table + (int64_t)number * COLUMNS;
}
#endif
