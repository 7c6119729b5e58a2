// What a design costs, from the definitions in docs/model.md alone: nothing here comes from the Python code that it checks.
// Covers the operator model without options at fp16, as in the default study: unfused attention, not causal, no vocabulary.
#pragma once
#include <cmath>

#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif

struct Law {  // nats
    double kappa_l, alpha_l, kappa_rho, alpha_rho, alpha_r, beta_1, kappa_d, beta_2, kappa_m, alpha_m, l_inf;
};

struct Scenario {
    Law law;
    double peak, bandwidth;                             // FLOP/s, byte/s
    double weight_bytes, activation_bytes, kv_bytes;    // of one element
    double batch, input_tokens, output_tokens;
    double head_dim;
};

// Metrics that are sums over layers, l * (attention + ffn): what a layer's part adds. ms, ms, ms, bytes.
enum Metric { PREFILL, DECODE, TOTAL, MEMORY, METRICS };

struct Part {
    double metric[METRICS];
    double loss;  // terms of the loss that belong to the part
};

HD inline double roofline_ms(const Scenario& s, double flops, double bytes) {
    return 1e3 * fmax(flops / s.peak, bytes / s.bandwidth);
}

// Time of a layer's norms and attention in one pass: T tokens, S_q queries and S_kv keys per sequence.
HD inline double attention_pass_ms(const Scenario& s, double d, double d_m, double s_q, double s_kv) {
    const double b = s.batch, t = b * s_q, n_h = d / s.head_dim;
    const double w = s.weight_bytes, a = s.activation_bytes, c = s.kv_bytes;
    const double scores = b * n_h * s_q * s_kv, products = 2 * b * s_q * s_kv * d;
    const double queries = b * s_q * d * a, cache = b * s_kv * d_m * c;
    const double norm = roofline_ms(s, 4 * t * d, 2 * t * d * a);
    const double q_or_o = roofline_ms(s, 2 * t * d * d, d * d * w + t * d * a + t * d * a);
    const double k_or_v = roofline_ms(s, 2 * t * d * d_m, d * d_m * w + t * d * a + t * d_m * c);
    const double qk_or_sv = roofline_ms(s, products, queries + cache + scores * a);
    const double softmax = roofline_ms(s, 5 * scores, 2 * scores * a);
    return 2 * norm + 2 * q_or_o + 2 * k_or_v + 2 * qk_or_sv + softmax;
}

// Distinct experts that T tokens touch: E (1 - (1 - K/E)^T).
HD inline double touched(double experts, double top_k, double tokens) {
    return experts == top_k ? experts : -experts * expm1(tokens * log1p(-top_k / experts));
}

// Time of a layer's router and FFN for T tokens; r d = K m, r_single d = m.
HD inline double ffn_pass_ms(const Scenario& s, double d, double experts, double top_k, double size, double t) {
    const double w = s.weight_bytes, a = s.activation_bytes, rd = top_k * size;
    const double weights = touched(experts, top_k, t) * size * d * w;
    const double router = experts > 1 ? roofline_ms(s, 2 * t * d * experts, d * experts * a + t * d * a + t * experts * a) : 0;
    const double projection = roofline_ms(s, 2 * t * rd * d, weights + t * top_k * d * a + t * rd * a);
    const double activation = roofline_ms(s, 5 * t * rd, 3 * t * rd * a);
    return router + 3 * projection + activation;
}

HD inline Part attention_part(const Scenario& s, double d, double n_kv) {
    const double d_m = s.head_dim * n_kv;
    Part p;
    p.metric[PREFILL] = attention_pass_ms(s, d, d_m, s.input_tokens, s.input_tokens);
    p.metric[DECODE] = 0;
    for (int step = 1; step <= int(s.output_tokens); ++step)
        p.metric[DECODE] += attention_pass_ms(s, d, d_m, 1, s.input_tokens + step);
    p.metric[TOTAL] = p.metric[PREFILL] + p.metric[DECODE];
    p.metric[MEMORY] = (2 * d * d + 2 * d * d_m) * s.weight_bytes;
    p.loss = s.law.kappa_m / pow(d_m, s.law.alpha_m);
    return p;
}

HD inline Part ffn_part(const Scenario& s, double d, double experts, double top_k, double size) {
    const Law& law = s.law;
    const double rho = top_k / experts, r = top_k * (size / d);
    Part p;
    p.metric[PREFILL] = ffn_pass_ms(s, d, experts, top_k, size, s.batch * s.input_tokens);
    p.metric[DECODE] = s.output_tokens * ffn_pass_ms(s, d, experts, top_k, size, s.batch);
    p.metric[TOTAL] = p.metric[PREFILL] + p.metric[DECODE];
    p.metric[MEMORY] = 3 * d * size * experts * s.weight_bytes;
    const double sparse = law.kappa_rho * pow(rho, law.alpha_rho) / pow(d, law.beta_1);
    p.loss = (sparse + law.kappa_d / pow(d, law.beta_2)) / pow(r, law.alpha_r);
    return p;
}

// The terms of the loss that depth alone decides.
HD inline double depth_loss(const Law& law, double depth) { return law.kappa_l / pow(depth, law.alpha_l) + law.l_inf; }
