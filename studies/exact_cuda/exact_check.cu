// Brute force over every design of a space, to check a claimed exact frontier.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 exact_check.cu -o exact_check        (a GPU)
//   g++ -O3 -march=native -std=c++17 -x c++ exact_check.cu -o exact_check (one core, for spaces of some 10^9)
//   ./exact_check DATA RESULT [--seconds S] [--designs N] [--from WIDTH]
//   ./exact_check price DATA < designs     (depth width experts top_k size n_kv; out: loss, prefill_ms, decode_ms, total_ms, bytes)
//
// DATA.txt and DATA.members come from `python -m studies.exact_cuda.check prepare`. Exit status 0: nothing speaks against the claim.
#include <chrono>
#include <iostream>

#include "verdict.h"

struct Options {
    double seconds = INFINITY, designs = INFINITY;
    int from = 0;  // the first width, as a place on its axis
};

inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr Count CAPACITY = 1 << 24;  // designs near the frontier that are kept

template <int N>
struct Device {  // arrays that all widths share
    LookupTables tables;
    Lookup<N> lookup;
    const double *depths, *depth_losses;
    Near* near;
    Counts* counts;

    explicit Device(const Study& s) : tables(tables_for(s)) {
        std::vector<double> losses;
        for (double l : s.depths) losses.push_back(depth_loss(s.scenario.law, l));
        depths = on_device(s.depths.data(), s.depths.size()), depth_losses = on_device(losses.data(), losses.size());
        near = reserve<Near>(CAPACITY);
        const Counts none{};
        counts = on_device(&none, 1);
        lookup.least = on_device(tables.least.data(), tables.least.size());
        lookup.least_high = on_device(tables.least_high.data(), tables.least_high.size());
        for (int o = 0; o < N; ++o) {
            lookup.buckets[o] = tables.buckets[o];
            lookup.claimed[o] = on_device(tables.claimed[o].data(), tables.claimed[o].size());
            lookup.start[o] = on_device(tables.start[o].data(), tables.start[o].size());
        }
    }

    Counts counted() const { Counts c; to_host(&c, counts, 1); return c; }
};

template <int N>
Task task_for(const Study& s, const Device<N>& device, const Choices& c, int width) {
    std::vector<Heads> heads;
    for (double n_kv : c.kv) {
        const Part p = attention_part(s.scenario, s.widths[width], n_kv);
        heads.push_back(Heads{p.loss, p.metric[MEMORY], {p.metric[s.objectives[0]], p.metric[s.objectives[N - 1]]}});
    }
    Task t{};
    t.scenario = s.scenario, t.width = s.widths[width], t.memory_limit = s.memory_limit, t.width_index = width;
    t.objectives[0] = s.objectives[0], t.objectives[1] = s.objectives[N - 1];
    t.n_sizes = int(c.sizes.size()), t.n_kv = int(c.kv.size()), t.n_depths = int(s.depths.size());
    t.experts = on_device(c.experts.data(), c.experts.size()), t.top_ks = on_device(c.top_ks.data(), c.top_ks.size());
    t.sizes = on_device(c.sizes.data(), c.sizes.size()), t.heads = on_device(heads.data(), heads.size());
    t.depths = device.depths, t.depth_losses = device.depth_losses;
    t.near = device.near, t.capacity = CAPACITY, t.counts = device.counts;
    return t;
}

void free_task(const Task& t) { release(t.experts), release(t.top_ks), release(t.sizes), release(t.heads); }

// One line, flushed: a killed run says how far it came.
void progress(FILE* to, const Study& s, int width, const Counts& c, Count listed, double seconds) {
    fprintf(to, "width %g: %llu of %llu designs, %llu within budgets, %llu near, %.2f s\n", s.widths[width], c.designs, listed, c.within, c.near,
            seconds);
    fflush(to);
}

template <int N>
Coverage cover(FILE* out, const Study& s, const Device<N>& device, const Options& options) {
    Coverage covered{std::vector<long>(s.widths.size(), 0), Counts{}, 0, CAPACITY, 0};
    for (double w : s.widths) {
        const Choices c = choices_of(s, w);
        covered.listed += Count(c.ffns()) * c.kv.size() * s.depths.size();
    }
    const double start = now();
    double said = start;
    for (int w = options.from; w < int(s.widths.size()); ++w) {
        const Choices c = choices_of(s, s.widths[w]);
        const Task t = task_for(s, device, c, w);
        const long partners = long(t.n_kv) * t.n_depths, step = std::max(1L, CHUNK / partners);
        for (long first = 0; first < c.ffns(); first += step) {
            if (now() - start > options.seconds || double(covered.counts.designs) >= options.designs) break;
            const long last = std::min(first + step, c.ffns());
            enumerate<N>(t, device.lookup, first, last);
            covered.designs[w] = last * partners;
            covered.counts = device.counted();
            const double seconds = now() - start;
            if (last == c.ffns() || now() - said > 5) progress(out, s, w, covered.counts, covered.listed, seconds);
            if (now() - said > 5) progress(stdout, s, w, covered.counts, covered.listed, seconds), said = now();
        }
        free_task(t);
    }
    covered.seconds = now() - start;
    return covered;
}

template <int N>
bool check(const Study& s, const std::string& result, const Options& options) {
    FILE* out = fopen(result.c_str(), "w");
    if (!out) throw std::runtime_error("expected to write " + result);
    const double start = now();
    fprintf(out, "space: %s\nobjectives: loss", s.name.c_str());
    const char* names[] = {"prefill_ms", "decode_ms", "total_ms", "memory_gb"};
    for (Metric m : s.objectives) fprintf(out, " %s", names[m]);
    fprintf(out, "\nmemory limit in bytes: %.17g\n", s.memory_limit);
    const Device<N> device(s);
    const double ready = now();
    const Coverage covered = cover<N>(out, s, device, options);
    std::vector<Near> near(std::min(covered.counts.near, CAPACITY));
    to_host(near.data(), device.near, near.size());
    fprintf(out, "seconds before: %.2f\n", ready - start);
    const bool good = judge(out, s, near, covered);
    fclose(out);
    printf("%s: %llu designs in %.2f s, %s\n", result.c_str(), covered.counts.designs, covered.seconds, good ? "nothing against the claim" : "REFUTED");
    return good;
}

int price(const Study& s) {
    for (Member m; std::cin >> m.depth >> m.width >> m.experts >> m.top_k >> m.size >> m.n_kv;) {
        const Part a = attention_part(s.scenario, m.width, m.n_kv), f = ffn_part(s.scenario, m.width, m.experts, m.top_k, m.size);
        printf("%a", depth_loss(s.scenario.law, m.depth) + a.loss + f.loss);
        for (int i = 0; i < METRICS; ++i) printf(" %a", m.depth * (a.metric[i] + f.metric[i]));
        printf("\n");
    }
    return 0;
}

int main(int argc, char** argv) try {
    if (argc < 3) throw std::runtime_error("expected DATA RESULT or price DATA");
    if (std::string(argv[1]) == "price") return price(read_study(argv[2]));
    Options options;
    for (int i = 3; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--seconds") options.seconds = atof(argv[i + 1]);
        else if (name == "--designs") options.designs = atof(argv[i + 1]);
        else if (name == "--from") options.from = atoi(argv[i + 1]);
        else throw std::runtime_error("expected --seconds, --designs or --from, got " + name);
    }
    const Study s = read_study(argv[1]);
    return (s.objectives.size() == 1 ? check<1>(s, argv[2], options) : check<2>(s, argv[2], options)) ? 0 : 1;
} catch (const std::exception& error) {
    fprintf(stderr, "exact_check: %s\n", error.what());
    return 2;
}
