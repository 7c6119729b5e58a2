// What the designs near the claimed frontier say about it, at 12 significant digits.
#pragma once
#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <unordered_map>

#include "enumerate.h"

typedef std::array<double, 3> Point;  // loss and the other objectives; 0 where there is no third

// The value with so many significant digits, half to even on the exact value.
inline double rounded(double v, int digits) {
    char text[40];
    snprintf(text, sizeof text, "%.*e", digits - 1, v);
    return strtod(text, nullptr);
}

enum Relation : char { FREE, EQUAL, DOMINATED };

// Of each point: whether one of those marked dominates it, else whether one is equal to it. O(n log n): in lexicographic order a
// point is dominated by what came before if the staircase of the other two objectives holds a step at or below it.
inline std::vector<Relation> related(const std::vector<Point>& points, const std::vector<char>& marked) {
    std::vector<size_t> order(points.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return points[a] < points[b]; });
    std::vector<Relation> found(points.size(), FREE);
    std::map<double, double> steps;
    for (size_t from = 0, to; from < order.size(); from = to) {
        const Point& p = points[order[from]];
        bool any = false;
        for (to = from; to < order.size() && points[order[to]] == p; ++to) any = any || marked[order[to]];
        auto after = steps.upper_bound(p[1]);
        const bool below = after != steps.begin() && std::prev(after)->second <= p[2];
        for (size_t i = from; i < to; ++i) found[order[i]] = below ? DOMINATED : (any ? EQUAL : FREE);
        if (!any || below) continue;
        while (after != steps.end() && after->second >= p[2]) after = steps.erase(after);
        steps[p[1]] = p[2];
    }
    return found;
}

// The genes of a design, as a line of a report.
inline Member decoded(const Study& s, const Near& n) {
    const Choices c = choices_of(s, s.widths[n.width]);
    const long depths = long(s.depths.size()), kv = n.design / depths, ffn = kv / long(c.kv.size()), size = long(c.sizes.size());
    Member m{};
    m.depth = int(s.depths[n.design % depths]), m.width = int(s.widths[n.width]);
    m.experts = int(c.experts[ffn / size]), m.top_k = int(c.top_ks[ffn / size]);
    m.size = int(c.sizes[ffn % size]), m.n_kv = int(c.kv[kv % long(c.kv.size())]);
    return m;
}

inline long index_of(const std::vector<double>& values, double v) {
    const auto at = std::find(values.begin(), values.end(), v);
    return at == values.end() ? -1 : at - values.begin();
}

// Where a member stands in the space; width -1: it is no design of it.
class Places {
    const Study& study;
    std::map<long, Choices> choices;
    std::map<long, std::unordered_map<long, long>> pairs;

public:
    explicit Places(const Study& s) : study(s) {}

    Near of(const Member& m) {
        const long w = index_of(study.widths, m.width), l = index_of(study.depths, m.depth);
        if (w < 0 || l < 0) return Near{-1, 0, 0, {0, 0}};
        if (!choices.count(w)) {
            const Choices& c = choices[w] = choices_of(study, m.width);
            for (size_t i = 0; i < c.experts.size(); ++i) pairs[w][long(c.experts[i]) * 65536 + long(c.top_ks[i])] = long(i);
        }
        const Choices& c = choices[w];
        const auto pair = pairs[w].find(long(m.experts) * 65536 + m.top_k);
        const long size = index_of(c.sizes, m.size), kv = index_of(c.kv, m.n_kv);
        if (pair == pairs[w].end() || size < 0 || kv < 0) return Near{-1, 0, 0, {0, 0}};
        const long ffn = pair->second * long(c.sizes.size()) + size;
        return Near{int(w), (ffn * long(c.kv.size()) + kv) * long(study.depths.size()) + l, 0, {0, 0}};
    }
};

struct Coverage {
    std::vector<long> designs;  // of each width: indices below were enumerated
    Counts counts;
    Count listed, capacity;
    double seconds;
};

inline void show(FILE* out, const Study& s, const char* what, const Near& n) {
    const Member m = decoded(s, n);
    fprintf(out, "%s: l %d d %d E %d K %d m %d n_kv %d values %.17g %.17g %.17g\n", what, m.depth, m.width, m.experts, m.top_k, m.size,
            m.n_kv, n.loss, n.value[0], n.value[1]);
}

inline double apart(double a, double b) { return std::fabs(a - b) / std::fabs(b); }

// Judges and writes; true: nothing speaks against the claim.
inline bool judge(FILE* out, const Study& s, std::vector<Near> near, const Coverage& covered) {
    const int n = int(s.objectives.size()), shown = 20;
    const bool complete = covered.counts.designs == covered.listed && covered.counts.near <= covered.capacity;
    const bool counted = (!s.stated_designs || covered.counts.designs == s.stated_designs) && (!s.stated_within || covered.counts.within == s.stated_within);
    std::map<std::pair<int, long>, size_t> at;
    for (size_t i = 0; i < near.size(); ++i) at[{near[i].width, near[i].design}] = i;
    std::vector<char> claimed(near.size(), 0);
    Places places(s);
    long strangers = 0, absent = 0, repeated = 0;
    double worst = 0;
    for (const Member& m : s.members) {
        Near place = places.of(m);
        if (place.width < 0) { ++strangers; continue; }
        const auto found = at.find({place.width, place.design});
        place.loss = m.value[0];
        for (int o = 0; o < n; ++o) place.value[o] = m.value[o + 1] * (s.objectives[o] == MEMORY ? 1e9 : 1);
        if (found == at.end()) {  // not enumerated: it stands for itself; enumerated: something is wrong with it
            if (place.design < covered.designs[place.width]) { if (absent++ < shown) show(out, s, "absent", place); continue; }
            at[{place.width, place.design}] = near.size();
            near.push_back(place), claimed.push_back(1);
            continue;
        }
        const Near& own = near[found->second];
        repeated += claimed[found->second];
        claimed[found->second] = 1;
        worst = std::max(worst, apart(own.loss, place.loss));
        for (int o = 0; o < n; ++o) worst = std::max(worst, apart(own.value[o], place.value[o]));
    }
    const std::vector<char> all(near.size(), 1);
    auto points = [&](int digits) {
        std::vector<Point> p;
        for (const Near& d : near) p.push_back({rounded(d.loss, digits), rounded(d.value[0], digits), rounded(d.value[1], digits)});
        return p;
    };
    const std::vector<Point> at_12 = points(12);
    std::vector<Point> mirrored = at_12;
    for (Point& p : mirrored) p = {-p[0], -p[1], -p[2]};
    const auto among_all = related(at_12, all), by_claimed = related(at_12, claimed), above_claimed = related(mirrored, claimed);
    long front = 0, missing = 0, wrong = 0, dominating = 0, free = 0, equal = 0, in_11 = 0, in_13 = 0;
    for (Relation r : related(points(11), all)) in_11 += r != DOMINATED;
    for (Relation r : related(points(13), all)) in_13 += r != DOMINATED;
    for (size_t i = 0; i < near.size(); ++i) {
        const bool member = among_all[i] != DOMINATED;
        front += member;
        if (member && !claimed[i] && missing++ < shown) show(out, s, "missing", near[i]);
        if (!member && claimed[i] && wrong++ < shown) show(out, s, "dominated member", near[i]);
        if (above_claimed[i] == DOMINATED && dominating++ < shown) show(out, s, "dominates a member", near[i]);
        free += !claimed[i] && by_claimed[i] == FREE;
        equal += !claimed[i] && by_claimed[i] == EQUAL;
    }
    const bool good = !strangers && !absent && !repeated && !missing && !wrong && !dominating && !free && worst < 1e-11 && (!complete || counted);
    fprintf(out, "designs listed: %llu\ndesigns enumerated: %llu\nwithin budgets: %llu\nnot clearly dominated: %llu\n", covered.listed,
            covered.counts.designs, covered.counts.within, covered.counts.near);
    fprintf(out, "stated designs: %llu\nstated within budgets: %llu\n", s.stated_designs, s.stated_within);
    fprintf(out, "claimed members: %zu\nno designs of the space: %ld\nrepeated: %ld\nabsent (clearly dominated or over a budget): %ld\n", s.members.size(),
            strangers, repeated, absent);
    fprintf(out, "largest relative difference of a claimed value: %.2g\n", worst);
    fprintf(out, "claimed members that are dominated: %ld\ndesigns that dominate a claimed member: %ld\n", wrong, dominating);
    fprintf(out, "designs that no claimed member weakly dominates: %ld\nunclaimed designs equal to a claimed member: %ld\n", free, equal);
    fprintf(out, "non-dominated designs at 12 digits: %ld\nof them not claimed: %ld\nat 11 digits: %ld\nat 13 digits: %ld\n", front, missing, in_11, in_13);
    fprintf(out, "seconds: %.2f\n", covered.seconds);
    fprintf(out, "verdict: %s\n", !good ? "REFUTED" : complete ? "verified" : "PARTIAL, nothing against the claim so far");
    fflush(out);
    return good;
}
