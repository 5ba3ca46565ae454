/* Runs recordings and prints decisions. A recording is a csv file with the columns t,x,y,p (microseconds) in any order
   or, for a network that takes frames, a csv file with one frame in each line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

#ifdef BOARD
#include "board.h"
#else
static uint64_t board_count(void) { return 0; }
#endif

static int all_windows;

static int fail(const char *path, long number, const char *why)
{
    fprintf(stderr, "%s: line %ld: %s\n", path, number, why);
    return 2;
}

static void print_logits(const network_state *n)
{
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    network_logits(n, logits);
    for (int m = 0; m < NETWORK_MEMBERS; m++) {
        printf("logits");
        for (int c = 0; c < NETWORK_CLASSES; c++) printf(" %.9g", (double)logits[m][c]);
        printf("\n");
    }
}

static void print_result(const network_state *n)
{
#ifdef NETWORK_VALUES
    float values[NETWORK_MEMBERS][NETWORK_CLASSES];
    network_logits(n, values);
    for (int c = 0; c < NETWORK_CLASSES; c++) printf("%s %.6g %s  ", network_labels[c], (double)values[0][c], network_units[c]);
    printf("(");
#else
    printf("%s  ", network_labels[network_decision(n)]);
#ifdef NETWORK_MARGINS
    uint8_t possible[NETWORK_CLASSES];
    const char *before = "possible: ";
    network_possible(n, possible);
    for (int c = 0; c < NETWORK_CLASSES; c++)
        if (possible[c]) {
            printf("%s%s", before, network_labels[c]);
            before = ", ";
        }
    printf("  ");
#endif
    printf("(");
#endif
}

/* axonnx verify builds the program with AXONNX_KEEP_LAYERS and compares where layers fire, and the bits of all membranes as
   one sum: each times an odd number, so that no single one can differ unseen. */
#ifdef AXONNX_KEEP_LAYERS
static uint32_t sum_membranes(const network_state *n, const network_layer *layer)
{
    uint32_t sum = 0, word;
    for (int i = 0; layer->membrane >= 0 && i < layer->places; i++) {
        const float value = (float)n->trace[layer->membrane + i] + 0.0f; /* one zero */
        memcpy(&word, &value, sizeof word);
        sum += word * (2u * (uint32_t)i + 1u);
    }
    return sum;
}
#endif

static void print_spikes(const network_state *n)
{
#ifdef AXONNX_KEEP_LAYERS
    for (const network_layer *layer = network_layers; layer->name; layer++) {
        printf("spikes %lu", (unsigned long)sum_membranes(n, layer));
        for (int i = 0; i < layer->places; i++)
            if (n->trace[layer->spikes + i] == 1) printf(" %d", i);
            else if (n->trace[layer->spikes + i] != 0) printf(" %d:%.9g", i, (double)n->trace[layer->spikes + i]);
        printf("\n");
    }
#else
    (void)n;
#endif
}

#if NETWORK_TAKES_EVENTS

#define LINE 1024

typedef struct {
    int64_t t;
    int x, y, p;
    size_t number; /* of equal times the first event stays first: which bin it is in may depend on that */
} event;

static network_stream stream;
#define network stream.network
static char line[LINE];
static event *events; /* of one recording, in order of time */
static size_t held, room;
static int columns[4], width; /* which of t, x, y, p each column holds */

static int read_header(void)
{
    width = 0;
    for (char *name = strtok(line, ", \"\r\n"); name; name = strtok(NULL, ", \"\r\n")) {
        const char *const known = strchr("txyp", name[0]);
        if (!known || name[1] || width == 4) return 0;
        columns[width++] = (int)(known - "txyp");
    }
    int seen = 0;
    for (int i = 0; i < width; i++) seen |= 1 << columns[i];
    return (seen & 3) == 3; /* t and x are needed */
}

/* A coordinate that no sensor has becomes -1. */
static int pixel(int64_t value)
{
    return value < 0 || value > INT32_MAX ? -1 : (int)value;
}

static int read_event(event *e)
{
    int64_t values[4] = {0, 0, 0, 0};
    char *at = line;
    for (int i = 0; i < width; i++) {
        char *end;
        errno = 0;
        values[columns[i]] = strtoll(at, &end, 10);
        if (end == at || errno) return 0;
        while (*end == ' ' || *end == '\r' || *end == '\n') end++;
        if (*end != (i + 1 < width ? ',' : '\0')) return 0;
        at = end + 1;
    }
    *e = (event){values[0], pixel(values[1]), pixel(values[2]), pixel(values[3]), held};
    return 1;
}

static int earlier(const void *a, const void *b)
{
    const event *const one = a, *const other = b;
    if (one->t == other->t) return (one->number > other->number) - (one->number < other->number);
    return one->t < other->t ? -1 : 1;
}

static int read_events(FILE *file, const char *path)
{
    held = 0;
    if (!fgets(line, LINE, file) || !read_header())
        return fail(path, 1, "expected the columns t,x,y,p; t and x are required");
    for (long number = 2; fgets(line, LINE, file); number++) {
        if (held == room) {
            event *const larger = realloc(events, (room = 2 * room + 1024) * sizeof *events);
            if (!larger) return fail(path, number, "there is no memory for so many events; cut the recording");
            events = larger;
        }
        if (!read_event(&events[held++])) return fail(path, number, "expected a whole number for each column");
    }
    qsort(events, held, sizeof *events, earlier);
    return 0;
}

/* Events of another sensor would give the decision on something else. */
static int refuse_strangers(const char *path)
{
    unsigned long off = 0;
    for (size_t i = 0; i < held; i++) off += network_cell(events[i].x, events[i].y, events[i].p) == NETWORK_OFF_SENSOR;
    if (!off) return 0;
    fprintf(stderr, "%s: %lu of %lu events are off the %d x %d sensor that the network expects: this is another sensor's "
            "recording\n", path, off, (unsigned long)held, NETWORK_SENSOR_WIDTH, NETWORK_SENSOR_HEIGHT);
    return 2;
}

/* Report a complete bin, and a complete window with its decision. Returns whether this was the last one that is wanted. */
static int report(int code, size_t counted, uint64_t spent)
{
    const network_state *const n = &network;
    print_spikes(n);
    if (code != NETWORK_DECIDED) return 0;
    print_result(n);
    if (all_windows) printf("window %lu", (unsigned long)(stream.bin / NETWORK_STEPS - 1));
    else printf("%lu events, %lu left out", (unsigned long)held, (unsigned long)(held - counted));
    printf(", %d steps", NETWORK_STEPS);
    if (spent) printf(", %lu instructions a step", (unsigned long)(spent / NETWORK_STEPS));
    printf(")\n");
    print_logits(n);
    return !all_windows;
}

/* Run the first window, or all of them. */
static int follow(const char *path)
{
    size_t next = 0, counted = 0;
    uint64_t spent = 0;
    int code = NETWORK_STEPPED;
    network_stream_init(&stream, 0);
    while (next < held || code > 0) {
        const event *const e = &events[next];
        const uint64_t before = board_count();
        code = next < held ? network_stream_event(&stream, e->t, e->x, e->y, e->p) : network_stream_end(&stream);
        if (code < 0 && code > NETWORK_OFF_SENSOR) return fail(path, 0, "found a value that the contract does not allow");
        if (code > 0) {
            spent += board_count() - before;
            if (report(code, counted, spent)) return 0;
            if (code == NETWORK_DECIDED) spent = 0;
        } else if (next < held) {
            counted += code == NETWORK_COUNTED;
            if (++next == held) code = NETWORK_STEPPED; /* then the open window is filled */
        }
    }
    return 0;
}

static int run_file(FILE *file, const char *path)
{
    const int refused = read_events(file, path);
    if (refused) return refused;
    return refuse_strangers(path) ? 2 : follow(path);
}

#else

static network_state network;
static network_value frame[NETWORK_INPUTS];

static int run_file(FILE *file, const char *path)
{
    uint64_t spent = 0;
    network_init(&network, 0, 0);
    for (int step = 0; step < NETWORK_STEPS; step++) {
        for (int i = 0; i < NETWORK_INPUTS; i++) {
            float value;
            if (fscanf(file, " %f ,", &value) != 1)
                return fail(path, step + 1, "expected whole numbers, one frame in each line");
            frame[i] = (network_value)value;
            if ((float)frame[i] != value) return fail(path, step + 1, "found a value that the contract does not allow");
        }
        const uint64_t before = board_count();
        if (network_step(&network, frame)) return fail(path, step + 1, "found a value that the contract does not allow");
        spent += board_count() - before;
        print_spikes(&network);
    }
    print_result(&network);
    printf("%d steps", NETWORK_STEPS);
    if (spent) printf(", %lu instructions a step", (unsigned long)(spent / NETWORK_STEPS));
    printf(")\n");
    print_logits(&network);
    return 0;
}

#endif

static int run(const char *path)
{
    FILE *const file = fopen(path, "r");
    if (!file) return fail(path, 0, "cannot be opened");
    const int code = run_file(file, path);
    fclose(file);
    return code;
}

/* A compiler that fuses operations gives other bits; the self-test finds other differences from the file. A program that
   prints spikes goes on, so that axonnx verify finds the place. */
static int check(void)
{
    const int failed = network_selftest(&network);
    if (failed == NETWORK_FUSED) fprintf(stderr, "the compiler fused products with additions: add -ffp-contract=off to its flags\n");
    else if (failed) fprintf(stderr, "the self-test failed (%d): this is not the network of the file; compile it again\n", failed);
#ifdef AXONNX_KEEP_LAYERS
    return 0;
#else
    return failed != 0;
#endif
}

int main(int argc, char **argv)
{
    if (check()) return 1;
    if (argc == 2 && strcmp(argv[1], "--check") == 0) return 0;
    all_windows = argc > 1 && strcmp(argv[1], "--windows") == 0;
    int worst = argc < 2 + all_windows ? 2 : 0;
    if (worst) fprintf(stderr, "usage: %s [--windows] RECORDING.csv ...\n", argc ? argv[0] : "network");
    for (int i = 1 + all_windows; i < argc; i++) {
        const int code = run(argv[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}
