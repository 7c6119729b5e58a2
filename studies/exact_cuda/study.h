// The study that a data file describes: scenario, axes, the valid combinations per width, and the claimed frontier.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "prices.h"

struct Member {  // as studies/exact_cuda/check.py writes it: 48 bytes
    int32_t depth, width, experts, top_k, size, n_kv;
    double value[3];  // loss, then the other objectives: ms or GB
};

struct Study {
    std::string name;
    Scenario scenario;
    std::vector<double> depths, widths, experts, top_ks, sizes, ratios, kv;  // kv 0: as many as heads; empty: divisors
    double max_ratio = INFINITY, memory_limit = INFINITY;                    // of expert size to width; bytes
    unsigned long long stated_designs = 0, stated_within = 0;                // to be found again; 0: not stated
    std::vector<Metric> objectives;                                         // beside the loss: one or two
    std::vector<Member> members;
};

// What goes with one width: everything that varies beside depth.
struct Choices {
    std::vector<double> experts, top_ks;  // valid pairs
    std::vector<double> sizes, kv;
    long ffns() const { return long(experts.size()) * long(sizes.size()); }
};

// K < E or E = K = 1; sizes up to the limit; KV heads that divide the heads, each once.
inline Choices choices_of(const Study& s, double width) {
    Choices c;
    for (double e : s.experts)
        for (double k : s.top_ks)
            if (k < e || (e == 1 && k == 1)) c.experts.push_back(e), c.top_ks.push_back(k);
    for (double m : s.sizes)
        if (m <= s.max_ratio * width) c.sizes.push_back(m);
    for (double ratio : s.ratios)
        if (ratio <= s.max_ratio) c.sizes.push_back(ratio * width);
    const int heads = int(width / s.scenario.head_dim);
    for (int n = 1; n <= heads; ++n) {
        bool listed = s.kv.empty();
        for (double v : s.kv) listed = listed || int(v) == n || (v == 0 && n == heads);
        if (listed && heads % n == 0) c.kv.push_back(n);
    }
    return c;
}

inline Metric metric_named(const std::string& name) {
    const char* names[] = {"prefill_ms", "decode_ms", "total_ms", "memory_gb"};
    for (int i = 0; i < METRICS; ++i)
        if (name == names[i]) return Metric(i);
    throw std::runtime_error("expected a metric that adds up over layers, got " + name);
}

inline double number(std::istream& in) {  // istream does not read hexadecimal floats
    std::string word;
    if (!(in >> word)) throw std::runtime_error("expected a number, got the end of a line");
    return strtod(word.c_str(), nullptr);
}

inline std::vector<double> numbers(std::istream& in) {
    std::vector<double> read;
    for (std::string word; in >> word;) read.push_back(strtod(word.c_str(), nullptr));
    return read;
}

inline void read_line(Study& s, const std::string& key, std::istream& in) {
    Scenario& c = s.scenario;
    if (key == "space") in >> s.name;
    else if (key == "depth") s.depths = numbers(in);
    else if (key == "width") s.widths = numbers(in);
    else if (key == "n_experts") s.experts = numbers(in);
    else if (key == "top_k") s.top_ks = numbers(in);
    else if (key == "expert_size") s.sizes = numbers(in);
    else if (key == "expert_ffn_ratio") s.ratios = numbers(in);
    else if (key == "n_kv_heads") s.kv = numbers(in);
    else if (key == "head_dim") c.head_dim = number(in);
    else if (key == "max_expert_ffn_ratio") s.max_ratio = number(in);
    else if (key == "memory_limit_bytes") s.memory_limit = number(in);
    else if (key == "stated") in >> s.stated_designs >> s.stated_within;
    else if (key == "objectives") for (std::string w; in >> w;) s.objectives.push_back(metric_named(w));
    else if (key == "law") { for (double* v = &c.law.kappa_l; v <= &c.law.l_inf; ++v) *v = number(in); }
    else if (key == "peak") c.peak = number(in);
    else if (key == "bandwidth") c.bandwidth = number(in);
    else if (key == "element_bytes") c.weight_bytes = number(in), c.activation_bytes = number(in), c.kv_bytes = number(in);
    else if (key == "workload") c.batch = number(in), c.input_tokens = number(in), c.output_tokens = number(in);
    else throw std::runtime_error("expected a known key, got " + key);
}

// DATA.txt, one key a line, and DATA.members beside it.
inline Study read_study(const std::string& data) {
    Study s;
    std::ifstream text(data + ".txt"), binary(data + ".members", std::ios::binary);
    if (!text || !binary) throw std::runtime_error("expected " + data + ".txt and .members");
    for (std::string line, key; std::getline(text, line);) {
        std::istringstream in(line);
        if (in >> key) read_line(s, key, in);
    }
    for (Member m; binary.read(reinterpret_cast<char*>(&m), sizeof m);) s.members.push_back(m);
    if (s.objectives.empty() || s.objectives.size() > 2) throw std::runtime_error("expected one or two objectives beside the loss");
    return s;
}
