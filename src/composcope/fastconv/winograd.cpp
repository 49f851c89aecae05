// Winograd convolutions, forward and backward: the 3x3 convolution as F(4,3), and the transposed convolution with
// kernel 4, stride 2, padding 1 as F(5,2), its four phases being 2x2 convolutions of the same tiles.
//
// Channels lie innermost, eight to a vector, so that every product in the transformed domain is one plain matrix
// product over channels or tiles. The batch is cut into blocks of about 48 tiles, which stay in the cache from the
// first transform to the last; the transformed input is made again in the backward pass, which is cheaper than to
// write it to memory and read it back.
#include "product.h"
#include "tiles.h"

namespace composcope {
namespace {

constexpr long BLOCK = 48;      // tiles, about
constexpr long PLANE_GAP = 16;  // floats; keeps the 36 planes of a block out of one another's cache sets

// ---- the layer: how it is cut into blocks of tiles

struct Layer {
    long n, c, k, h, w, up, threads;
    long step, m, phases, cp, kp, kq;       // kq: transformed output channels, all phases
    long tile_rows, tile_cols;              // of one image
    long images, band_rows, bands, groups;  // of one block, and of the batch
    long tiles;                             // of one block at most

    explicit Layer(const long* s) : n(s[0]), c(s[1]), k(s[2]), h(s[3]), w(s[4]), up(s[5]), threads(s[6]) {
        step = up ? 2 : 1;
        m = up ? 5 : 4;
        phases = up ? 4 : 1;
        cp = padded(c);
        kp = padded(k);
        kq = phases * kp;
        tile_rows = ceil_div(h + up, m);
        tile_cols = ceil_div(w + up, m);
        const long image_tiles = tile_rows * tile_cols;
        images = std::min(n, std::max(1L, BLOCK / image_tiles));
        bands = image_tiles <= BLOCK * 4 / 3 ? 1 : ceil_div(tile_rows, std::max(1L, BLOCK / tile_cols));
        band_rows = ceil_div(tile_rows, bands);
        bands = ceil_div(tile_rows, band_rows);
        groups = ceil_div(n, images);
        tiles = images * band_rows * tile_cols;
    }
    long plane() const { return tiles * std::max(cp, kq) + PLANE_GAP; }  // of one point, on either side
    long weights() const { return POINTS * cp * kq; }
    long buffer() const { return LANES * (step * m * band_rows + 2) * (step * m * tile_cols + 2); }
    long block() const { return 2 * (buffer() + POINTS * plane()); }
    Window in_window(long row0, long rows) const {
        return {h, w, m * row0 - 1, -1, m * rows + TILE - m, m * tile_cols + TILE - m};
    }
    Window out_window(long row0, long rows) const {
        return {step * h, step * w, step * m * row0 - (step - 1), 1 - step, step * m * rows, step * m * tile_cols};
    }
    // where tap (u, v) of transformed output channel q and input channel i lies in torch's weight, or -1 for padding
    long weight_at(long q, long i, long u, long v) const {
        const long phase = q / kp, o = q % kp;
        if (o >= k || i >= c) return -1;
        if (!up) return (o * c + i) * 9 + u * 3 + v;
        return (i * k + o) * 16 + (3 - phase / 2 - 2 * u) * 4 + (3 - phase % 2 - 2 * v);
    }
};

// fn(image, first tile row, end row, index of the first tile within the block) for the parts of one block
template <class Fn>
void each_image(const Layer& l, long group, long band, const Fn& fn) {
    const long row0 = band * l.band_rows, row1 = std::min(l.tile_rows, row0 + l.band_rows);
    const long first = group * l.images, end = std::min(l.n, first + l.images);
    for (long i = first; i < end; ++i) fn(i, row0, row1, (i - first) * (row1 - row0) * l.tile_cols);
}

long block_tiles(const Layer& l, long group, long band) {
    const long rows = std::min(l.tile_rows, (band + 1) * l.band_rows) - band * l.band_rows;
    return (std::min(l.n, (group + 1) * l.images) - group * l.images) * rows * l.tile_cols;
}

// ---- transforms of whole blocks; sixteen channels at a time, so that a cache line is touched once

// fn(first channel, lanes, buffer) for the one or two vectors of channels from c0 on
template <class Fn>
void each_half(const Layer& l, long c0, long channels, float* buf, const Fn& fn) {
    for (long c = c0; c < std::min(channels, c0 + 2 * LANES); c += LANES, buf += l.buffer())
        fn(c, std::min<long>(LANES, channels - c), buf);
}

// fn(tile, first pixel row, first pixel column) for the tiles of one image's part of a block
template <class Fn>
void each_tile(const Layer& l, long tile, long rows, const Fn& fn) {
    for (long y = 0; y < rows; ++y)
        for (long x = 0; x < l.tile_cols; ++x) fn(tile++, l.m * y, l.m * x);
}

void transform_input(const Layer& l, const float* x, long group, long band, float* buf, float* v) {
    each_image(l, group, band, [&](long image, long row0, long row1, long tile) {
        const Window win = l.in_window(row0, row1 - row0);
        for (long c0 = 0; c0 < l.c; c0 += 2 * LANES) {
            each_half(l, c0, l.c, buf, [&](long c, long lanes, float* part) {
                gather(x + (image * l.c + c) * l.h * l.w, nullptr, lanes, win, part);
            });
            each_tile(l, tile, row1 - row0, [&](long t, long py, long px) {
                each_half(l, c0, l.c, buf, [&](long c, long, float* part) {
                    tile_input(part + (py * win.cols + px) * LANES, win.cols * LANES, v + t * l.cp + c, l.plane());
                });
            });
        }
    });
}

void transform_input_adjoint(const Layer& l, const float* v, long group, long band, float* buf, float* gx) {
    each_image(l, group, band, [&](long image, long row0, long row1, long tile) {
        const Window win = l.in_window(row0, row1 - row0);
        for (long c0 = 0; c0 < l.c; c0 += 2 * LANES) {
            std::memset(buf, 0, sizeof(float) * 2 * l.buffer());
            each_tile(l, tile, row1 - row0, [&](long t, long py, long px) {
                each_half(l, c0, l.c, buf, [&](long c, long, float* part) {
                    tile_input_adjoint(v + t * l.cp + c, l.plane(), part + (py * win.cols + px) * LANES,
                                       win.cols * LANES);
                });
            });
            each_half(l, c0, l.c, buf, [&](long c, long lanes, float* part) {
                // the band above has already written the rows it shares with this one
                scatter(part, lanes, win, vec{}, false, band ? TILE - l.m : 0, gx + (image * l.c + c) * l.h * l.w);
            });
        }
    });
}

// where phase (a, b) of the pixel (py, px) lies in the buffer
inline long phase_at(const Layer& l, const Window& win, long phase, long py, long px) {
    const long y = l.step * (py + 1) - 1 - phase / 2, x = l.step * (px + 1) - 1 - phase % 2;
    return (y * win.cols + x) * LANES;
}

template <int M>
void transform_output(const Layer& l, const float* m, const float* bias, bool with_relu, long group, long band,
                      float* buf, float* y) {
    const long pixels = l.step * l.h * l.step * l.w;
    each_image(l, group, band, [&](long image, long row0, long row1, long tile) {
        const Window win = l.out_window(row0, row1 - row0);
        for (long k0 = 0; k0 < l.k; k0 += 2 * LANES) {
            for (long phase = 0; phase < l.phases; ++phase)
                each_tile(l, tile, row1 - row0, [&](long t, long py, long px) {
                    each_half(l, k0, l.k, buf, [&](long k, long, float* part) {
                        tile_output<M>(m + t * l.kq + phase * l.kp + k, l.plane(),
                                       part + phase_at(l, win, phase, py, px), win.cols * LANES, l.step);
                    });
                });
            each_half(l, k0, l.k, buf, [&](long k, long lanes, float* part) {
                vec shift = {};
                if (bias) shift = (vec)_mm256_maskload_ps(bias + k, lane_mask(lanes));
                scatter(part, lanes, win, shift, with_relu, 0, y + (image * l.k + k) * pixels);
            });
        }
    });
}

template <int M>
void transform_output_adjoint(const Layer& l, const float* gy, const float* gate, long group, long band, float* buf,
                              float* m, float* bias_sums) {
    const long pixels = l.step * l.h * l.step * l.w;
    each_image(l, group, band, [&](long image, long row0, long row1, long tile) {
        const Window win = l.out_window(row0, row1 - row0);
        for (long k0 = 0; k0 < l.k; k0 += 2 * LANES) {
            each_half(l, k0, l.k, buf, [&](long k, long lanes, float* part) {
                const long at = (image * l.k + k) * pixels;
                const vec sum = gather(gy + at, gate ? gate + at : nullptr, lanes, win, part);
                float* total = bias_sums + image * l.kp + k;
                store(total, band ? load(total) + sum : sum);
            });
            for (long phase = 0; phase < l.phases; ++phase)
                each_tile(l, tile, row1 - row0, [&](long t, long py, long px) {
                    each_half(l, k0, l.k, buf, [&](long k, long, float* part) {
                        tile_output_adjoint<M>(part + phase_at(l, win, phase, py, px), win.cols * LANES, l.step,
                                               m + t * l.kq + phase * l.kp + k, l.plane());
                    });
                });
        }
    });
}

// ---- transforms of the weight: packed strips u[point][strip][depth][16]

template <int R>
void transform_weight(const Layer& l, const float* w, bool adjoint, float* u) {
    const long cols = adjoint ? l.cp : l.kq, depth = adjoint ? l.kq : l.cp;
    for (long j = 0; j < cols; j += LANES) {
        const long strip = j / (2 * LANES) * 2 * LANES, wide = std::min<long>(2 * LANES, cols - strip);
        for (long d = 0; d < depth; ++d) {
            vec g[R * R] = {}, half[TILE * R], row[TILE];
            for (int tap = 0; tap < R * R; ++tap)
                for (int lane = 0; lane < LANES; ++lane) {
                    const long at = adjoint ? l.weight_at(d, j + lane, tap / R, tap % R)
                                            : l.weight_at(j + lane, d, tap / R, tap % R);
                    g[tap][lane] = at < 0 ? 0.0f : w[at];
                }
            for (int i = 0; i < R; ++i) kernel_1d<R, R>(g + i, half + i);
            for (int i = 0; i < TILE; ++i) {
                kernel_1d<R, 1>(half + i * R, row);
                for (int p = 0; p < TILE; ++p)
                    store(u + (i * TILE + p) * depth * cols + strip * depth + d * wide + j - strip, row[p]);
            }
        }
    }
}

template <int R>
void transform_weight_adjoint(const Layer& l, const float* u, float* gw) {
    for (long i = 0; i < l.c; ++i)
        for (long q = 0; q < l.kq; q += LANES) {
            vec v[POINTS], half[R * TILE], g[R];
            for (int p = 0; p < POINTS; ++p) v[p] = load(u + (p * l.cp + i) * l.kq + q);
            for (int p = 0; p < TILE; ++p) kernel_1d_adjoint<R, TILE>(v + p, half + p);
            for (int a = 0; a < R; ++a) {
                kernel_1d_adjoint<R, 1>(half + a * TILE, g);
                for (int b = 0; b < R; ++b)
                    for (int lane = 0; lane < LANES; ++lane) {
                        const long at = l.weight_at(q + lane, i, a, b);
                        if (at >= 0) gw[at] = g[b][lane];
                    }
            }
        }
}

// ---- the passes

template <int M>
void forward(const Layer& l, const float* x, const float* w, const float* bias, bool with_relu, float* y,
             float* scratch) {
    float *u = scratch, *rest = u + l.weights();
    transform_weight<7 - M>(l, w, false, u);
    parallel(l.groups, l.threads, [&](long begin, long end, long worker) {
        // each plane of products takes the place of the plane of inputs before, which halves what the cache must hold
        float *buf = rest + worker * l.block(), *m = buf + 2 * l.buffer(), *v = m + l.plane();
        for (long i = begin * l.bands; i < end * l.bands; ++i) {
            const long group = i / l.bands, band = i % l.bands, tiles = block_tiles(l, group, band);
            transform_input(l, x, group, band, buf, v);
            for (long p = 0; p < POINTS; ++p)
                product<false>({v + p * l.plane(), l.cp, 1}, u + p * l.cp * l.kq, 0, m + p * l.plane(), tiles,
                               l.cp, l.kq);
            transform_output<M>(l, m, bias, with_relu, group, band, buf, y);
        }
    });
}

template <int M>
void backward(const Layer& l, const float* gy, const float* gate, const float* x, const float* w, float* gx,
              float* gw, float* gb, float* scratch) {
    float *u = scratch, *gu = u + l.weights();  // one gu for each worker
    float *sums = gu + l.threads * l.weights(), *rest = sums + l.n * l.kp;
    if (gx) transform_weight<7 - M>(l, w, true, u);
    if (gw) std::memset(gu, 0, sizeof(float) * l.threads * l.weights());
    parallel(l.groups, l.threads, [&](long begin, long end, long worker) {
        float *buf = rest + worker * l.block(), *v = buf + 2 * l.buffer(), *m = v + POINTS * l.plane();
        for (long i = begin * l.bands; i < end * l.bands; ++i) {
            const long group = i / l.bands, band = i % l.bands, tiles = block_tiles(l, group, band);
            transform_output_adjoint<M>(l, gy, gate, group, band, buf, m, sums);
            if (gw) transform_input(l, x, group, band, buf, v);
            for (long p = 0; p < POINTS; ++p) {  // the input's gradient takes the place of the input
                float *vp = v + p * l.plane(), *mp = m + p * l.plane(), *sum = gu + worker * l.weights();
                if (gw) product<true>({vp, 1, l.cp}, mp, l.kq, sum + p * l.cp * l.kq, l.cp, tiles, l.kq);
                if (gx) product<false>({mp, l.kq, 1}, u + p * l.cp * l.kq, 0, vp, tiles, l.kq, l.cp);
            }
            if (gx) transform_input_adjoint(l, v, group, band, buf, gx);
        }
    });
    if (gw) {
        for (long i = l.weights(); i < l.threads * l.weights(); ++i) gu[i % l.weights()] += gu[i];
        transform_weight_adjoint<7 - M>(l, gu, gw);
    }
    for (long o = 0; gb && o < l.k; ++o) {
        gb[o] = 0.0f;
        for (long i = 0; i < l.n; ++i) gb[o] += sums[i * l.kp + o];
    }
}

}  // namespace
}  // namespace composcope

using composcope::Layer;

extern "C" {

// Floats of scratch to provide, for either pass.
long composcope_winograd_scratch(const long* shape) {
    const Layer l(shape);
    return (1 + l.threads) * l.weights() + l.n * l.kp + l.threads * l.block();
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
