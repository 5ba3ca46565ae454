// Runs recordings through the Verilog in a simulation by Verilator and prints decisions, logits, cycles and events.
// A recording is a csv file with the columns t,x,y,p (microseconds) in order of time. AXONNX_KEEP_LAYERS also prints,
// after each time step, the bits of all membranes as one sum and which neurons fired: axonnx verify compares them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "Vnetwork.h"
#include "facts.h"
#include "verilated.h"

struct Event {
    int64_t t;
    long x, y, p;
};

static Vnetwork *chip;
static unsigned long cycles, longest, begun;
static std::vector<std::vector<int64_t>> membranes(LAYERS);
static std::vector<std::vector<int>> fired(LAYERS);
static std::vector<int64_t> totals(CLASSES);

// A port of Verilator is a number, or an array of words where it is wider than 64 bits.
template <class T> static uint32_t word(const T &port, int i) { return (uint32_t)((uint64_t)port >> (32 * i)); }
template <std::size_t N> static uint32_t word(const VlWide<N> &port, int i) { return port[i]; }

template <class T> static int64_t bits(const T &port, int at, int width)
{
    int64_t value = 0;
    for (int i = 0; i < width; i++) value |= (int64_t)(word(port, (at + i) / 32) >> ((at + i) % 32) & 1) << i;
    return value;
}

template <class T> static int64_t number(const T &port, int at, int width)
{
    const int64_t value = bits(port, at, width);
    return value - ((value >> (width - 1) & 1) << width);
}

template <class T> static void put(T &port, int at, unsigned bit) { port |= (T)bit << at; }
template <std::size_t N> static void put(VlWide<N> &port, int at, unsigned bit) { port[at / 32] |= bit << (at % 32); }
template <class T> static void clear(T &port) { port = 0; }
template <std::size_t N> static void clear(VlWide<N> &port) { memset(port.data(), 0, sizeof(uint32_t) * N); }

// Rows hold the channels of one pixel; neurons are counted channel by channel, as the network's file does.
static void probe()
{
    const int layer = chip->probe_layer, row = chip->probe_row, pixels = layers[layer].pixels;
    if (!layers[layer].fires) return;
    const int pixel = row / layers[layer].groups, first = row % layers[layer].groups * LANES;
    for (int lane = 0; lane < LANES && first + lane < layers[layer].channels; lane++) {
        const int neuron = (first + lane) * pixels + pixel;
        membranes[layer][neuron] = number(chip->probe_v, lane * MEMBRANE_BITS, MEMBRANE_BITS);
        fired[layer][neuron] = (int)bits(chip->probe_o, lane, 1);
    }
}

static void print_spikes()
{
#ifdef AXONNX_KEEP_LAYERS
    for (int layer = 0; layer < LAYERS; layer++) {
        if (!layers[layer].fires) continue;
        uint32_t sum = 0, bits;
        for (std::size_t i = 0; i < membranes[layer].size(); i++) {
            const float value = (float)membranes[layer][i];
            memcpy(&bits, &value, sizeof bits);
            sum += bits * (2u * (uint32_t)i + 1u);
        }
        printf("spikes %lu", (unsigned long)sum);
        for (std::size_t i = 0; i < fired[layer].size(); i++)
            if (fired[layer][i]) printf(" %zu", i);
        printf("\n");
    }
#endif
}

static void print_window(unsigned long events)
{
    printf("%s  (%lu events, %lu cycles, %lu in the longest step)\nlogits", labels[chip->decision], events,
           cycles - begun, longest);
    for (int c = 0; c < CLASSES; c++)
        printf(" %.9g", (double)((float)((double)totals[c] * UNIT) / (float)STEPS));
    printf("\n");
}

struct Run {
    unsigned long events = 0, step_began = 0;
    int windows = 0;
    bool all;
};

static void clock_once(Run &run)
{
    chip->clk = 0, chip->eval();
    chip->clk = 1, chip->eval();
    cycles++;
    if (chip->probe_valid) probe();
    if (chip->sum_valid) totals[chip->sum_class] = number(chip->sum_total, 0, TOTAL_BITS);
    if (chip->step_done) {
        if (cycles - run.step_began > longest) longest = cycles - run.step_began;
        run.step_began = cycles;
        if (run.all || !run.windows) print_spikes();
    }
    if (chip->window_done) {
        if (run.all || !run.windows) print_window(run.events);
        run.windows++, run.events = 0, begun = cycles, longest = 0;
    }
}

static void load_weights(Run &run)
{
#ifdef LOADABLE
    std::ifstream file("weights.hex");
    std::string line;
    for (int row = 0; std::getline(file, line); row++) {
        clear(chip->ld_data);
        for (std::size_t i = 0; i < line.size(); i++) {
            const unsigned digit = (unsigned)strtoul(line.substr(line.size() - 1 - i, 1).c_str(), nullptr, 16);
            for (int bit = 0; bit < 4; bit++)
                if (digit >> bit & 1) put(chip->ld_data, (int)(4 * i) + bit, 1);
        }
        chip->ld_row = (unsigned)row, chip->ld_en = 1;
        clock_once(run);
    }
    chip->ld_en = 0;
#else
    (void)run;
#endif
}

static std::vector<Event> read_events(const char *path)
{
    std::ifstream file(path);
    std::string line, name, field;
    std::vector<Event> events;
    if (!std::getline(file, line)) fprintf(stderr, "%s: cannot be read, or is empty\n", path), exit(2);
    std::vector<char> columns;
    for (std::stringstream head(line); std::getline(head, name, ',');) columns.push_back(name[0]);
    while (std::getline(file, line)) {
        Event e = {0, 0, 0, 0};
        std::stringstream row(line);
        for (char column : columns) {
            if (!std::getline(row, field, ',')) fprintf(stderr, "%s: a line has too few columns\n", path), exit(2);
            const int64_t value = strtoll(field.c_str(), nullptr, 10);
            if (column == 't') e.t = value;
            else (column == 'x' ? e.x : column == 'y' ? e.y : e.p) = value < 0 || value > 65535 ? 65535 : (long)value;
        }
        events.push_back(e);
    }
    return events;
}

static void run_recording(const char *path, bool all)
{
    Run run;
    run.all = all;
    chip->ev_valid = 0, chip->flush = 0, chip->ld_en = 0, chip->rst = 1;
    clock_once(run), load_weights(run), clock_once(run);
    chip->rst = 0;
    begun = run.step_began = cycles, longest = 0;
    for (const Event &e : read_events(path)) {
        chip->ev_t = (uint64_t)e.t & 0xffffffffff, chip->ev_x = (unsigned short)e.x, chip->ev_y = (unsigned short)e.y;
        chip->ev_p = e.p > 255 ? 255 : (unsigned char)e.p, chip->ev_valid = 1;
        for (bool taken = false; !taken;) {
            chip->clk = 0, chip->eval(), taken = chip->ev_ready;
            clock_once(run);
        }
        chip->ev_valid = 0, run.events++;
    }
    for (chip->flush = 1; !chip->flushed;) clock_once(run);
}

int main(int count, char **words)
{
    const bool all = count > 1 && !strcmp(words[1], "--windows");
    if (count < 2 + all) {
        fprintf(stderr, "usage: %s [--windows] RECORDING.csv ...\n", words[0]);
        return 2;
    }
    chip = new Vnetwork;
    for (int layer = 0; layer < LAYERS; layer++) {
        membranes[layer].resize((std::size_t)(layers[layer].channels * layers[layer].pixels));
        fired[layer].resize(membranes[layer].size());
    }
    for (int i = 1 + all; i < count; i++) run_recording(words[i], all);
    delete chip;
    return 0;
}
