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

#if !NETWORK_TAKES_EVENTS
#define NETWORK_BINS NETWORK_STEPS
#define NETWORK_BIN_US INT64_C(1)
#define NETWORK_FROM_FIRST 0
#endif

#define LINE 1024

typedef struct {
    int64_t t, x, y, p;
} event;

static network_state network;
static int16_t counts[NETWORK_BINS][NETWORK_INPUTS]; /* frames of a recording's first window */
static float frame[NETWORK_INPUTS];
static char line[LINE];
static long events, left_out;
static int columns[8], width; /* which of t, x, y, p each column holds */

static int fail(const char *path, long number, const char *why)
{
    fprintf(stderr, "%s: line %ld: %s\n", path, number, why);
    return 2;
}

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
    e->t = values[0], e->x = values[1], e->y = values[2], e->p = values[3];
    return 1;
}

static int cell_of(const event *e)
{
    const int64_t most = INT32_MAX;
    if (e->x < 0 || e->y < 0 || e->p < 0 || e->x > most || e->y > most || e->p > most) return -1;
    return network_cell((int)e->x, (int)e->y, (int)e->p);
}

/* Start of bin 0: time zero, or the first event on the sensor. */
static int find_start(FILE *file, int64_t *start)
{
    event e;
    *start = NETWORK_FROM_FIRST ? INT64_MAX : 0;
    while (NETWORK_FROM_FIRST && fgets(line, LINE, file))
        if (read_event(&e) && cell_of(&e) >= 0 && e.t < *start) *start = e.t;
    rewind(file);
    return fgets(line, LINE, file) && read_header();
}

static int count_events(FILE *file, const char *path)
{
    int64_t start;
    event e;
    if (!fgets(line, LINE, file) || !read_header() || !find_start(file, &start))
        return fail(path, 1, "expected the columns t,x,y,p; t and x are required");
    for (long number = 2; fgets(line, LINE, file); number++) {
        if (!read_event(&e)) return fail(path, number, "expected a whole number for each column");
        const int cell = cell_of(&e);
        const uint64_t bin = ((uint64_t)e.t - (uint64_t)start) / (uint64_t)NETWORK_BIN_US; /* cannot overflow */
        events++;
        if (cell < 0 || e.t < start || bin >= NETWORK_BINS) left_out++;
        else if ((float)counts[bin][cell] < NETWORK_CLIP) counts[bin][cell]++;
    }
    return 0;
}

static int read_frames(FILE *file, const char *path)
{
    for (long number = 0; number < NETWORK_BINS; number++)
        for (int i = 0; i < NETWORK_INPUTS; i++) {
            int value;
            if (fscanf(file, " %d ,", &value) != 1 || value < INT16_MIN || value > INT16_MAX)
                return fail(path, number + 1, "expected whole numbers, one frame in each line");
            counts[number][i] = (int16_t)value;
        }
    return 0;
}

static void print_logits(void)
{
    float logits[NETWORK_MEMBERS][NETWORK_CLASSES];
    network_logits(&network, logits);
    for (int m = 0; m < NETWORK_MEMBERS; m++) {
        printf("logits");
        for (int c = 0; c < NETWORK_CLASSES; c++) printf(" %.9g", (double)logits[m][c]);
        printf("\n");
    }
}

static int run(const char *path)
{
    FILE *const file = fopen(path, "r");
    if (!file) return fail(path, 0, "cannot be opened");
    memset(counts, 0, sizeof counts);
    events = left_out = 0;
    const int refused = NETWORK_TAKES_EVENTS ? count_events(file, path) : read_frames(file, path);
    fclose(file);
    if (refused) return refused;
    network_init(&network, 0, 0);
    uint64_t spent = 0;
    for (int bin = 0; bin < NETWORK_BINS; bin++) {
        for (int i = 0; i < NETWORK_INPUTS; i++) frame[i] = (float)counts[bin][i];
        const uint64_t before = board_count();
        if (network_step(&network, frame)) return fail(path, bin + 1, "found a value that the contract does not allow");
        spent += board_count() - before;
    }
#if NETWORK_TAKES_EVENTS
    if (2 * left_out > events)
        fprintf(stderr, "%s: most events are off the %d x %d sensor or outside the window; map the events of a larger "
                "camera to this sensor first\n", path, NETWORK_SENSOR_WIDTH, NETWORK_SENSOR_HEIGHT);
#endif
    printf("%s  (%ld events, %ld left out, %d steps", network_labels[network_decision(&network)], events, left_out,
           NETWORK_BINS);
    if (spent) printf(", %lu instructions a step", (unsigned long)(spent / NETWORK_BINS));
    printf(")\n");
    print_logits();
    return 0;
}

/* Whether the compiler fused operations: such a build would give other bits and must not be used. */
static int check(void)
{
    if (network_fuses()) fprintf(stderr, "the compiler fused products with additions: add -ffp-contract=off to its flags\n");
    return network_fuses();
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--check") == 0) return check();
    int worst = argc < 2 ? 2 : 0;
    if (worst) fprintf(stderr, "usage: %s RECORDING.csv ...\n", argc ? argv[0] : "network");
    for (int i = 1; i < argc; i++) {
        const int code = run(argv[i]);
        worst = code > worst ? code : worst;
    }
    return worst;
}
