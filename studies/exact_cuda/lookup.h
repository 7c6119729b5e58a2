// Which designs are clearly dominated by a claimed member: worse by more than BAND of the value in every objective.
//
// Times and bytes are put into buckets by the leading bits of their floating-point form, which is monotone, so that a member of
// a lower bucket is better by more than BAND (its own bucket is that of its value times 1 + BAND). A table holds, per bucket (per
// pair of buckets where there are two such objectives), the least loss of the members of lower buckets. What the table does not
// decide is compared with the members of the same bucket one by one. Both steps only ever drop designs that are clearly dominated.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "study.h"

constexpr double BAND = 1e-10;

struct Claimed {
    double value[3];  // times 1 + BAND; ms and bytes
};

HD inline int high_word(double v) {
#ifdef __CUDA_ARCH__
    return __double2hiint(v);
#else
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return int(bits >> 32);
#endif
}

struct Buckets {
    int shift, first, count;  // of the high word; values beyond the ends fall into the end buckets
    HD int of(double v) const {
        const int b = (high_word(v) >> shift) - first;
        return b < 0 ? 0 : (b >= count ? count - 1 : b);
    }
};

template <int N>  // objectives beside the loss
struct Lookup {
    Buckets buckets[N];
    const double* least;          // of a cell: the least loss of members of lower buckets, times 1 + BAND
    const int* least_high;        // its high word
    const Claimed* claimed[N];    // ordered by objective 1 (by objective 2)
    const int* start[N];          // of a bucket's members in that order

    HD int cell(const double* v) const {
        const int i = buckets[0].of(v[0]);
        if constexpr (N == 1) return i;
        else return i * buckets[1].count + buckets[1].of(v[1]);
    }

    // True: some member is better by more than BAND in every objective.
    HD bool clearly_dominated(double loss, const double* v) const {
        if (least[cell(v)] < loss) return true;
        for (int o = 0; o < N; ++o) {
            const int b = buckets[o].of(v[o]);
            for (int i = start[o][b]; i < start[o][b + 1]; ++i)
                if (better(claimed[o][i], loss, v)) return true;
        }
        return false;
    }

    HD static bool better(const Claimed& c, double loss, const double* v) {
        if constexpr (N == 1) return c.value[0] < loss && c.value[1] < v[0];
        else return c.value[0] < loss && c.value[1] < v[0] && c.value[2] < v[1];
    }
};

struct LookupTables {  // what a Lookup points to, on the host
    Buckets buckets[2];
    std::vector<double> least;
    std::vector<int> least_high;
    std::vector<Claimed> claimed[2];
    std::vector<int> start[2];
};

inline Buckets buckets_for(const std::vector<Claimed>& claimed, int objective, int per_octave_bits) {
    double low = INFINITY, high = 0;
    for (const Claimed& c : claimed) low = std::min(low, c.value[objective]), high = std::max(high, c.value[objective]);
    Buckets b{20 - per_octave_bits, 0, 0};
    if (claimed.empty()) return Buckets{b.shift, 0, 1};
    b.first = high_word(low) >> b.shift;
    b.count = (high_word(high) >> b.shift) - b.first + 2;  // the last one lies above every member
    return b;
}

inline void order_by(std::vector<Claimed>& claimed, std::vector<int>& start, const Buckets& buckets, int objective) {
    std::sort(claimed.begin(), claimed.end(), [=](const Claimed& a, const Claimed& b) { return a.value[objective] < b.value[objective]; });
    start.assign(buckets.count + 1, 0);
    for (const Claimed& c : claimed) ++start[buckets.of(c.value[objective]) + 1];
    for (int b = 0; b < buckets.count; ++b) start[b + 1] += start[b];
}

// The least loss of members whose buckets are all lower.
inline void fill_least(LookupTables& t, int n) {
    const int rows = t.buckets[0].count, columns = n == 2 ? t.buckets[1].count : 1;
    t.least.assign(size_t(rows) * columns, INFINITY);
    auto at = [&](int i, int j) -> double& { return t.least[size_t(i) * columns + j]; };
    for (const Claimed& c : t.claimed[0]) {
        const int i = t.buckets[0].of(c.value[1]) + 1, j = n == 2 ? t.buckets[1].of(c.value[2]) + 1 : 0;
        at(i, j) = std::min(at(i, j), c.value[0]);
    }
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) {
            if (i > 0) at(i, j) = std::min(at(i, j), at(i - 1, j));
            if (j > 0) at(i, j) = std::min(at(i, j), at(i, j - 1));
        }
    for (double v : t.least) t.least_high.push_back(high_word(v));
}

inline LookupTables tables_for(const Study& s) {
    LookupTables t;
    const int n = int(s.objectives.size());
    std::vector<Claimed> claimed;
    for (const Member& m : s.members) {
        Claimed c{{m.value[0] * (1 + BAND), 0, 0}};
        for (int o = 0; o < n; ++o) c.value[o + 1] = m.value[o + 1] * (s.objectives[o] == MEMORY ? 1e9 : 1) * (1 + BAND);
        claimed.push_back(c);
    }
    for (int o = 0; o < n; ++o) {
        t.buckets[o] = buckets_for(claimed, o + 1, 8);
        t.claimed[o] = claimed;
        order_by(t.claimed[o], t.start[o], t.buckets[o], o + 1);
    }
    fill_least(t, n);
    return t;
}
