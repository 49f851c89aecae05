// The transforms of a layer's weight, group by group of output channels, each group as one matrix per point:
// [input channel][output channel], or its transpose for the input's gradient, packed in the product's strips.
#pragma once
#include "layer.h"
#include "product.h"

namespace composcope {

// u[point] of LANES kernels of R x R taps, `step` floats apart; those from `count` on are zero.
template <int R>
inline void transform_kernels(const float* w, long count, long step, const long* taps, float* u, long plane) {
    vec g[R * R], half[TILE * R], row[TILE];
    for (int tap = 0; tap < R * R; ++tap) {
        g[tap] = vec{};
        if (count == LANES)
            for (int lane = 0; lane < LANES; ++lane) g[tap][lane] = w[lane * step + taps[tap]];
        else
            for (long lane = 0; lane < count; ++lane) g[tap][lane] = w[lane * step + taps[tap]];
    }
    for (int i = 0; i < R; ++i) kernel_1d<R, R>(g + i, half + i);
    for (int i = 0; i < TILE; ++i) {
        kernel_1d<R, 1>(half + i * R, row);
        for (int p = 0; p < TILE; ++p) store(u + (i * TILE + p) * plane, row[p]);
    }
}

// The matrices of a forward pass, or with TRANSPOSED those of the input's gradient.
template <int R, bool TRANSPOSED>
void transform_weight(const Layer& l, const float* w, float* u) {
    for (long i = 0; i < l.groups(); ++i) {
        const Group g = l.group(i);
        const long cols = TRANSPOSED ? l.cp : g.cols, depth = TRANSPOSED ? g.cols : l.cp;
        // the lanes of a vector are a matrix's columns: output channels, or input channels if it is transposed
        for (long q = 0; q < g.cols; q += TRANSPOSED ? 1 : LANES) {
            const long phase = q / g.channels, o = g.first + q % g.channels;
            long taps[R * R];
            for (int t = 0; t < R * R; ++t) taps[t] = l.tap(phase, t / R, t % R);
            for (long c = 0; c < l.cp; c += TRANSPOSED ? LANES : 1) {
                const long col = TRANSPOSED ? c : q, row = TRANSPOSED ? q : c;
                const Strip strip = strip_of(col / LANES, cols / LANES);
                const long first = strip.first * LANES, at = first * depth + row * strip.wide * LANES + col - first;
                const long left = TRANSPOSED ? l.c - c : l.k - o;
                const long count = o >= l.k || c >= l.c ? 0 : std::min<long>(LANES, left);
                transform_kernels<R>(w + (count ? o * l.out_step() + c * l.in_step() : 0), count,
                                     TRANSPOSED ? l.in_step() : l.out_step(), taps, u + g.weights + at, depth * cols);
            }
        }
    }
}

// The weight's gradient from that of its transform, which is not packed.
template <int R>
void transform_weight_adjoint(const Layer& l, const float* u, float* gw) {
    for (long n = 0; n < l.groups(); ++n) {
        const Group g = l.group(n);
        for (long q = 0; q < g.cols; q += LANES) {
            const long phase = q / g.channels, o = g.first + q % g.channels, lanes = std::min<long>(LANES, l.k - o);
            for (long c = 0; c < l.c; ++c) {
                vec v[POINTS], half[R * TILE], row[R];
                for (int p = 0; p < POINTS; ++p) v[p] = load(u + g.weights + (p * l.cp + c) * g.cols + q);
                for (int p = 0; p < TILE; ++p) kernel_1d_adjoint<R, TILE>(v + p, half + p);
                float* to = gw + o * l.out_step() + c * l.in_step();
                for (int a = 0; a < R; ++a) {
                    kernel_1d_adjoint<R, 1>(half + a * TILE, row);
                    for (int b = 0; b < R; ++b)
                        for (long lane = 0; lane < lanes; ++lane)
                            to[lane * l.out_step() + l.tap(phase, a, b)] = row[b][lane];
                }
            }
        }
    }
}

}  // namespace composcope
