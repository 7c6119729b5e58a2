// Every design of one width: the values of all are formed, counted, and held against the claimed members.
// The same source is a CUDA kernel and, without CUDA, a loop on the processor.
#pragma once
#include "lookup.h"

typedef unsigned long long Count;

struct Near {  // a design within the budgets that no claimed member clearly dominates
    int width;
    long design;  // ((pair * sizes + size) * n_kv + kv) * depths + depth
    double loss, value[2];
};

struct Counts {
    Count designs, within, near;
};

struct Heads {  // a part of one KV grouping
    double loss, bytes, value[2];
};

struct Task {  // one width; arrays in device memory
    Scenario scenario;
    double width, memory_limit;
    Metric objectives[2];
    int width_index, n_sizes, n_kv, n_depths;
    const double *experts, *top_ks, *sizes, *depths, *depth_losses;
    const Heads* heads;
    Near* near;
    Count capacity;
    Counts* counts;
};

HD inline Count add(Count* to, Count n) {
#ifdef __CUDA_ARCH__
    return atomicAdd(to, n);
#else
    const Count before = *to;
    *to += n;
    return before;
#endif
}

template <int N>
HD inline void keep_if_near(const Task& t, const Lookup<N>& lookup, long design, double loss, const double* v) {
    if (lookup.clearly_dominated(loss, v)) return;
    const Count slot = add(&t.counts->near, 1);
    if (slot < t.capacity) t.near[slot] = Near{t.width_index, design, loss, {v[0], N == 2 ? v[N - 1] : 0}};
}

// All depths and KV heads of one FFN. `heads`, `depths`, `depth_losses`, `least_high`: the task's, wherever they are fastest to read.
template <int N>
HD inline void every_partner(const Task& t, const Lookup<N>& lookup, const Heads* heads, const double* depths, const double* depth_losses,
                             const int* least_high, long ffn, unsigned& designs, unsigned& within) {
    const long pair = ffn / t.n_sizes, size = ffn % t.n_sizes;
    const Part f = ffn_part(t.scenario, t.width, t.experts[pair], t.top_ks[pair], t.sizes[size]);
    const double f0 = f.metric[t.objectives[0]], f1 = f.metric[t.objectives[N - 1]];
    for (int k = 0; k < t.n_kv; ++k) {
        const Heads h = heads[k];
        const double layer_0 = h.value[0] + f0, layer_1 = h.value[1] + f1, layer_bytes = h.bytes + f.metric[MEMORY], rest = h.loss + f.loss;
#pragma unroll 4
        for (int j = 0; j < t.n_depths; ++j) {
            const double l = depths[j], loss = depth_losses[j] + rest, v[2] = {l * layer_0, l * layer_1};
            const bool fits = l * layer_bytes <= t.memory_limit;
            ++designs;
            within += fits;
            if (fits && high_word(loss) <= least_high[lookup.cell(v)])
                keep_if_near<N>(t, lookup, (ffn * t.n_kv + k) * t.n_depths + j, loss, v);
        }
    }
}

#ifdef __CUDACC__

constexpr int THREADS = 256;

template <typename T>
__device__ T* copied(char*& shared, const T* from, int n) {
    T* to = reinterpret_cast<T*>(shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
    shared += sizeof(T) * n;
    return to;
}

template <int N>
__global__ void __launch_bounds__(THREADS) enumerate_kernel(const Task t, const Lookup<N> lookup, long first, long last) {
    extern __shared__ __align__(16) char memory[];
    __shared__ unsigned sums[2];
    char* next = memory;
    const Heads* heads = copied(next, t.heads, t.n_kv);
    const double* depths = copied(next, t.depths, t.n_depths);
    const double* depth_losses = copied(next, t.depth_losses, t.n_depths);
    const int* least_high = N == 1 ? copied(next, lookup.least_high, lookup.buckets[0].count) : lookup.least_high;
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    unsigned designs = 0, within = 0;
    const long ffn = first + long(blockIdx.x) * THREADS + threadIdx.x;
    if (ffn < last) every_partner<N>(t, lookup, heads, depths, depth_losses, least_high, ffn, designs, within);
    designs = __reduce_add_sync(0xffffffffu, designs);
    within = __reduce_add_sync(0xffffffffu, within);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], designs), atomicAdd(&sums[1], within);
    __syncthreads();
    if (threadIdx.x == 0) add(&t.counts->designs, sums[0]), add(&t.counts->within, sums[1]);
}

#define CUDA(call)                                                                                     \
    do {                                                                                               \
        const cudaError_t error = (call);                                                              \
        if (error != cudaSuccess) throw std::runtime_error(std::string(#call ": ") + cudaGetErrorString(error)); \
    } while (0)

constexpr long CHUNK = 20000000000;  // designs of one launch: well under a second

template <typename T>
T* reserve(size_t n) {
    T* p;
    CUDA(cudaMalloc(&p, std::max<size_t>(1, n) * sizeof(T)));
    return p;
}

template <typename T>
void release(T* p) { CUDA(cudaFree(const_cast<std::remove_const_t<T>*>(p))); }

template <typename T>
T* on_device(const T* from, size_t n) {
    T* p = reserve<T>(n);
    CUDA(cudaMemcpy(p, from, n * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <typename T>
void to_host(T* to, const T* from, size_t n) { CUDA(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyDeviceToHost)); }

template <int N>
void enumerate(const Task& t, const Lookup<N>& lookup, long first, long last) {
    const size_t table = N == 1 ? lookup.buckets[0].count * sizeof(int) : 0;
    const size_t shared = t.n_kv * sizeof(Heads) + 2 * t.n_depths * sizeof(double) + table;
    CUDA(cudaFuncSetAttribute(enumerate_kernel<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)));
    enumerate_kernel<N><<<unsigned((last - first + THREADS - 1) / THREADS), THREADS, shared>>>(t, lookup, first, last);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

#else

constexpr long CHUNK = 200000000;

template <typename T>
T* reserve(size_t n) { return static_cast<T*>(calloc(std::max<size_t>(1, n), sizeof(T))); }

template <typename T>
void release(T* p) { free(const_cast<std::remove_const_t<T>*>(p)); }

template <typename T>
T* on_device(const T* from, size_t n) { T* p = reserve<T>(n); std::copy(from, from + n, p); return p; }

template <typename T>
void to_host(T* to, const T* from, size_t n) { std::copy(from, from + n, to); }

template <int N>
void enumerate(const Task& t, const Lookup<N>& lookup, long first, long last) {
    for (long ffn = first; ffn < last; ++ffn) {
        unsigned designs = 0, within = 0;
        every_partner<N>(t, lookup, t.heads, t.depths, t.depth_losses, lookup.least_high, ffn, designs, within);
        t.counts->designs += designs, t.counts->within += within;
    }
}

#endif
