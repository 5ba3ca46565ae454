typedef struct {
    float memory[NETWORK_MEMORY];   /* states, then what a step computes */
    float outside[NETWORK_OUTSIDE]; /* one step's input, and its noise */
    int32_t events[NETWORK_EVENTS]; /* lists of active inputs */
    uint16_t bits[NETWORK_BITS];    /* spikes of layers that are read as events alone */
    int16_t packed[NETWORK_PACKED]; /* inputs of a layer where most are active */
    float trace[NETWORK_TRACE];     /* spikes and membranes of all layers, where they are kept */
    int64_t counts[NETWORK_ROWS];   /* spikes and synaptic operations of each instruction so far */
    uint64_t seed;                  /* of a stochastic network's noise */
    uint32_t sample;                /* the name of what it sees, for its noise */
    uint32_t steps;                 /* time steps so far */
} network_state; /* all there is of one network; a copy of it is a saved state */

typedef struct {
    uint16_t x, y;
    uint8_t p;
} network_event;

enum {
    NETWORK_BAD_VALUE = -1, /* a number of the frame is not as the contract promises */
    NETWORK_OVER = -2,      /* no more time steps are known: call network_reset */
    NETWORK_NO_EVENTS = -3, /* this network takes frames alone */
    NETWORK_FUSED = -4      /* the compiler fused products with additions, which changes bits: see the Makefile's flags */
};

extern const char *const network_labels[NETWORK_CLASSES];

/* A network at rest. seed and sample matter to stochastic networks alone. */
void network_init(network_state *n, uint64_t seed, uint32_t sample);
/* Back to rest. */
void network_reset(network_state *n);
/* One time step (or one image): counts or pixel values, channel by channel. 0, or why it was not taken. */
int network_step(network_state *n, const float frame[NETWORK_INPUTS]);
/* One time step from the events of one time bin. How many were left out, being off the sensor; or why not taken. */
int network_step_events(network_state *n, const network_event *events, size_t count);
/* The place of an event in its frame, or -1: off the sensor, or of no polarity. */
int network_cell(int x, int y, int p);
/* The network's own bits, after one step at least; a spiking network's are its read-out's mean so far. */
void network_logits(const network_state *n, float logits[NETWORK_MEMBERS][NETWORK_CLASSES]);
/* The class with the largest mean probability over members; softmax decides only among several. */
int network_decision(const network_state *n);
/* The instruction set that runs, and 0 where its compiler rounded every operation as it must. */
const char *network_isa(void);
int network_fuses(void);
