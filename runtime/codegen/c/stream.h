typedef struct {
    network_state network;
    int64_t start;                  /* time of bin 0 in microseconds */
    uint64_t bin;                   /* complete bins */
    int64_t anchor, last;           /* where bin `base` begins; the last event of the open bin */
    uint64_t base;                  /* 0, or the bin after the last one that ended with NETWORK_BIN_EVENTS */
    uint32_t events;                /* events in the open bin */
    int started;                    /* whether bin 0 has begun */
    int touched;                    /* whether an event has reached the open bin */
    uint8_t counts[NETWORK_INPUTS]; /* the open bin */
    uint64_t late, before;          /* events whose bin was complete; events before bin 0 */
    uint64_t off_sensor, bad_polarity, cropped;
} network_stream; /* a network that follows a stream of events; a copy of it is a saved state */

enum { NETWORK_COUNTED = 0, NETWORK_STEPPED = 1, NETWORK_DECIDED = 2 };

/* Start a stream at rest. Each window is a sample of its own: its number selects the noise of a stochastic network. */
void network_stream_init(network_stream *s, uint64_t seed);
/* Take one event; events come in order of time. While the result is above zero, a bin is complete (NETWORK_STEPPED), or
   with it a window (NETWORK_DECIDED), and the event has not been counted: read the network, then call again with the same
   event. NETWORK_COUNTED: the event was taken. Below zero: it was left out and counted (NETWORK_OFF_SENSOR,
   NETWORK_BAD_POLARITY, NETWORK_CROPPED, NETWORK_BEFORE, NETWORK_LATE), or an error of network_step. */
int network_stream_event(network_stream *s, int64_t t, int x, int y, int p);
/* Complete the bins that end at or before t, one a call, until the result is NETWORK_COUNTED. For a silent sensor; and a
   bin that NETWORK_BIN_EVENTS end is complete with the last of them, whose time this call may name. */
int network_stream_advance(network_stream *s, int64_t t);
/* Fill the open window with silence, one bin a call, until the result is NETWORK_COUNTED. */
int network_stream_end(network_stream *s);
