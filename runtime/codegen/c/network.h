typedef struct {
    network_value memory[NETWORK_MEMORY];   /* states, then the values of a step */
    network_value outside[NETWORK_OUTSIDE]; /* input and noise of one step */
    int32_t events[NETWORK_EVENTS]; /* lists of active inputs */
    uint16_t bits[NETWORK_BITS];    /* spikes of layers that are only read as events */
    int16_t packed[NETWORK_PACKED]; /* inputs of a layer for a dense product */
    network_value trace[NETWORK_TRACE]; /* spikes and membranes of all layers, if they are kept */
    int64_t counts[NETWORK_ROWS];   /* spikes and synaptic operations of each instruction so far */
    uint64_t seed;                  /* seed of a stochastic network's noise */
    uint32_t sample;                /* number of the sample, which selects its noise */
    uint32_t steps;                 /* time steps so far */
} network_state; /* the complete state of one network; a copy of it is a saved state */

typedef struct {
    uint16_t x, y;
    uint8_t p;
} network_event;

enum {
    NETWORK_BAD_VALUE = -1, /* the frame holds a number that the contract does not allow */
    NETWORK_OVER = -2,      /* the network has no parameters for more time steps: call network_reset */
    NETWORK_NO_EVENTS = -3, /* this network takes only frames */
    NETWORK_FUSED = -4,     /* the compiler fused products with additions, which changes bits: see the Makefile's flags */
    NETWORK_UNSURE = -6,    /* more than one class is possible: the network abstains */
    NETWORK_WRONG = -5,     /* the self-test gave another result than the file */
    NETWORK_OFF_SENSOR = -10,   /* the event is off the sensor that the network expects */
    NETWORK_BAD_POLARITY = -11, /* its polarity is unknown */
    NETWORK_CROPPED = -12,      /* it is beside the region of the sensor that the network sees */
    NETWORK_BEFORE = -13,       /* it is before the first bin */
    NETWORK_LATE = -14          /* its bin is already complete */
};

extern const char *const network_labels[NETWORK_CLASSES];
#ifdef NETWORK_VALUES
extern const char *const network_units[NETWORK_CLASSES]; /* of the real values, which network_logits reads */
#endif

/* Start a network at rest. Only stochastic networks use seed and sample. */
void network_init(network_state *n, uint64_t seed, uint32_t sample);
/* Return the network to rest. */
void network_reset(network_state *n);
/* Run one time step (or one image) on counts or pixel values, channel by channel. Returns 0 or an error above. */
int network_step(network_state *n, const network_value frame[NETWORK_INPUTS]);
/* Run one time step on the events of one bin. Returns how many are off the sensor or of an unknown polarity, which shows
   that they are of another sensor, or an error above. */
int network_step_events(network_state *n, const network_event *events, size_t count);
/* Return the index of an event in its frame, or NETWORK_OFF_SENSOR, NETWORK_BAD_POLARITY or NETWORK_CROPPED. */
int network_cell(int x, int y, int p);
/* Read the logits after at least one step; those of a spiking network are the read-out's mean so far. */
void network_logits(const network_state *n, float logits[NETWORK_MEMBERS][NETWORK_CLASSES]);
#ifndef NETWORK_VALUES
/* Return the class with the largest logit; for an ensemble, with the largest mean probability. */
int network_decision(const network_state *n);
#endif
#ifdef NETWORK_MARGINS
/* Mark the classes that are possible in this time step with the file's coverage, and return how many they are. The class
   of network_decision is always one of them. */
int network_possible(const network_state *n, uint8_t possible[NETWORK_CLASSES]);
/* Return the class if no other is possible, else NETWORK_UNSURE. */
int network_answer(const network_state *n);
#endif
/* Return the name of the instruction set in use; return 0 if its compiler did not fuse operations. */
const char *network_isa(void);
int network_fuses(void);
/* Check names, sensor, bins and arithmetic against the file: 0, NETWORK_WRONG or an error of network_step. It takes
   milliseconds, uses n as its memory, and leaves the network at rest. */
int network_selftest(network_state *n);
