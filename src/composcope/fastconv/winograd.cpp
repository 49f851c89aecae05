// Winograd convolutions, forward and backward: the 3x3 convolution as F(4,3), and the transposed convolution with
// kernel 4, stride 2, padding 1 as F(5,2), its four phases being 2x2 convolutions of the same tiles.
//
// Channels lie innermost, LANES to a vector, so that every product in the transformed domain is one plain matrix product
// over channels or tiles. The batch is cut into blocks that stay in the cache from the first transform to the last; the
// transformed input is made again in the backward pass, which is cheaper than writing it to memory and reading it back.
#include "blocks.h"
#include "threads.h"
#include "weights.h"

namespace composcope {
namespace {

// Request a batch's part of a tensor with `image` floats to an image (not in bands, whose parts of planes are scattered).
void request(Prefetch& prefetch, const Layer& l, long batch, const float* x, long image, long calls,
             bool write = false) {
    if (!x || batch >= l.batches || l.bands > 1) return;
    const Block b = l.block(batch, 0);
    prefetch.add(x + b.first_image * image, (b.end_image - b.first_image) * image, calls, write);
}

template <int M>
void forward(const Layer& l, const float* x, const float* w, const float* bias, bool with_relu, float* y,
             float* scratch) {
    float *u = scratch, *rest = u + l.weights();
    transform_weight<TILE + 1 - M, false>(l, w, u);
    const long worker_size = l.chunk_pixels() + 2 * l.planes();
    parallel(l.batches, l.threads, [&](long begin, long end, long worker) {
        float *pixels = rest + worker * worker_size, *m = pixels + l.chunk_pixels();
        // with one group the products of a point overwrite the inputs of the point before, which saves cache
        float* v = m + (l.groups() > 1 ? l.planes() : l.plane());
        for (long i = begin * l.bands; i < end * l.bands; ++i) {
            const long batch = i / l.bands;
            const Block b = l.block(batch, i % l.bands);
            transform_input(l, b, x, pixels, v);
            Prefetch prefetch;
            const long calls = POINTS * prefetch_calls(b.tiles, l.phases * l.kp);
            request(prefetch, l, batch + 1, x, l.c * l.in_pixels(), calls);
            // a doubling layer's outputs are too large to wait in the cache
            if (!l.up) request(prefetch, l, batch, y, l.k * l.out_pixels(), calls, true);
            for (long j = 0; j < l.groups(); ++j) {
                const Group g = l.group(j);
                const long size = l.cp * g.cols;
                for (long p = 0; p < POINTS; ++p) {
                    const float* up = u + g.weights + p * size;
                    const int kept = prefetch.size();
                    if (PREFETCHES_WEIGHTS) prefetch.add(up + size, size, prefetch_calls(b.tiles, g.cols));
                    product<false>({v + p * l.plane(), l.cp, 1}, up, 0, m + p * l.plane(), b.tiles, l.cp, g.cols,
                                   prefetch);
                    prefetch.forget_after(kept);
                }
                transform_output<M>(l, b, g, m, bias, with_relu, pixels, y);
            }
        }
    });
}

template <int M>
void backward(const Layer& l, const float* gy, const float* gate, const float* x, const float* w, float* gx,
              float* gw, float* gb, float* scratch) {
    float *u = scratch, *gu = u + l.weights();  // one gu for each worker
    float *bias_sums = gu + l.threads * l.weights(), *rest = bias_sums + l.n * l.kp;
    if (gx) transform_weight<TILE + 1 - M, true>(l, w, u);
    if (gw) std::memset(gu, 0, sizeof(float) * l.threads * l.weights());
    const long worker_size = l.chunk_pixels() + (l.groups() > 1 ? 3 : 2) * l.planes();
    parallel(l.batches, l.threads, [&](long begin, long end, long worker) {
        float *pixels = rest + worker * worker_size, *v = pixels + l.chunk_pixels(), *m = v + l.planes();
        // the input's gradient: added up over the groups, or in the input's place if there is only one
        float* gv = l.groups() > 1 ? m + l.planes() : v;
        for (long i = begin * l.bands; i < end * l.bands; ++i) {
            const long batch = i / l.bands;
            const Block b = l.block(batch, i % l.bands);
            if (gw) transform_input(l, b, x, pixels, v);
            Prefetch prefetch;
            const long calls = POINTS * (prefetch_calls(l.cp, l.phases * l.kp) + prefetch_calls(b.tiles, l.cp));
            request(prefetch, l, batch + 1, x, l.c * l.in_pixels(), calls);
            request(prefetch, l, batch, gx, l.c * l.in_pixels(), calls, true);
            if (!l.up) request(prefetch, l, batch + 1, gy, l.k * l.out_pixels(), calls);
            if (!l.up) request(prefetch, l, batch + 1, gate, l.k * l.out_pixels(), calls);
            for (long j = 0; j < l.groups(); ++j) {
                const Group g = l.group(j);
                const long size = l.cp * g.cols;
                transform_output_adjoint<M>(l, b, g, gy, gate, pixels, m, bias_sums);
                for (long p = 0; p < POINTS; ++p) {
                    float *vp = v + p * l.plane(), *mp = m + p * l.plane(), *gvp = gv + p * l.plane();
                    float *up = u + g.weights + p * size, *sum = gu + worker * l.weights() + g.weights + p * size;
                    const int kept = prefetch.size();
                    if (PREFETCHES_WEIGHTS) {
                        const long share = prefetch_calls(l.cp, g.cols) + prefetch_calls(b.tiles, l.cp);
                        prefetch.add(up + size, size, share);
                        prefetch.add(sum + size, size, share, true);
                    }
                    if (gw) product<true>({vp, 1, l.cp}, mp, g.cols, sum, l.cp, b.tiles, g.cols, prefetch);
                    if (gx && j) product<true>({mp, g.cols, 1}, up, 0, gvp, b.tiles, g.cols, l.cp, prefetch);
                    if (gx && !j) product<false>({mp, g.cols, 1}, up, 0, gvp, b.tiles, g.cols, l.cp, prefetch);
                    prefetch.forget_after(kept);
                }
            }
            if (gx) transform_input_adjoint(l, b, gv, pixels, gx);
        }
    });
    if (gw) {
        for (long i = l.weights(); i < l.threads * l.weights(); ++i) gu[i % l.weights()] += gu[i];
        transform_weight_adjoint<TILE + 1 - M>(l, gu, gw);
    }
    for (long o = 0; gb && o < l.k; ++o) {
        gb[o] = 0.0f;
        for (long i = 0; i < l.n; ++i) gb[o] += bias_sums[i * l.kp + o];
    }
}

}  // namespace
}  // namespace composcope

using composcope::Layer;

extern "C" {

long composcope_lanes() { return composcope::LANES; }

// Floats of scratch to provide, for either pass.
long composcope_winograd_scratch(const long* shape) {
    const Layer l(shape);
    return (1 + l.threads) * l.weights() + l.n * l.kp + l.threads * (l.chunk_pixels() + 3 * l.planes());
}

void composcope_winograd_forward(const long* shape, const float* x, const float* w, const float* bias, int relu,
                                 float* y, float* scratch) {
    const Layer l(shape);
    if (l.up) return composcope::forward<5>(l, x, w, bias, relu, y, scratch);
    composcope::forward<4>(l, x, w, bias, relu, y, scratch);
}

// gate is the layer's output where ReLU was fused; any of gx, gw, gb may be null.
void composcope_winograd_backward(const long* shape, const float* gy, const float* gate, const float* x,
                                  const float* w, float* gx, float* gw, float* gb, float* scratch) {
    const Layer l(shape);
    if (l.up) return composcope::backward<5>(l, gy, gate, x, w, gx, gw, gb, scratch);
    composcope::backward<4>(l, gy, gate, x, w, gx, gw, gb, scratch);
}
}
