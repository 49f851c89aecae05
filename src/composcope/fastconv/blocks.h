// The transforms of whole blocks: planes of pixels <-> planes of points, channels innermost.
#pragma once
#include "layer.h"

namespace composcope {

// fn(image, index of its first tile within the block)
template <class Fn>
void each_image(const Layer& l, const Block& b, const Fn& fn) {
    const long tiles = (b.end_row - b.first_row) * l.tile_cols;
    for (long i = b.first_image; i < b.end_image; ++i) fn(i, (i - b.first_image) * tiles);
}

// fn(tile, first pixel row, first pixel column) for the tiles of one image's part of a block
template <class Fn>
void each_tile(const Layer& l, const Block& b, long tile, const Fn& fn) {
    for (long y = 0; y < b.end_row - b.first_row; ++y)
        for (long x = 0; x < l.tile_cols; ++x) fn(tile++, l.m * y, l.m * x);
}

// fn(first channel, lanes, pixels) for the vectors of the chunk of channels that begins at `first`
template <class Fn>
void each_vector(const Layer& l, long first, long end, float* pixels, const Fn& fn) {
    for (long c = first; c < std::min(end, first + CHUNK); c += LANES, pixels += l.pixels())
        fn(c, std::min<long>(LANES, end - c), pixels);
}

inline void transform_input(const Layer& l, const Block& b, const float* x, float* pixels, float* v) {
    const Window win = l.in_window(b);
    each_image(l, b, [&](long image, long first_tile) {
        for (long chunk = 0; chunk < l.c; chunk += CHUNK) {
            each_vector(l, chunk, l.c, pixels, [&](long c, long lanes, float* part) {
                gather<false>(x + (image * l.c + c) * l.in_pixels(), nullptr, lanes, win, part);
            });
            each_tile(l, b, first_tile, [&](long tile, long py, long px) {
                each_vector(l, chunk, l.c, pixels, [&](long c, long, float* part) {
                    tile_input(part + (py * win.cols + px) * LANES, win.cols * LANES, v + tile * l.cp + c, l.plane());
                });
            });
        }
    });
}

inline void transform_input_adjoint(const Layer& l, const Block& b, const float* v, float* pixels, float* gx) {
    const Window win = l.in_window(b);
    each_image(l, b, [&](long image, long first_tile) {
        for (long chunk = 0; chunk < l.c; chunk += CHUNK) {
            std::memset(pixels, 0, sizeof(float) * l.chunk_pixels());
            each_tile(l, b, first_tile, [&](long tile, long py, long px) {
                each_vector(l, chunk, l.c, pixels, [&](long c, long, float* part) {
                    tile_input_adjoint(v + tile * l.cp + c, l.plane(), part + (py * win.cols + px) * LANES,
                                       win.cols * LANES);
                });
            });
            each_vector(l, chunk, l.c, pixels, [&](long c, long lanes, float* part) {
                const long shared_rows = b.below_another ? TILE - l.m : 0;
                scatter(part, lanes, win, vec{}, false, shared_rows, gx + (image * l.c + c) * l.in_pixels());
            });
        }
    });
}

template <int M>
void transform_output(const Layer& l, const Block& b, const Group& g, const float* m, const float* bias,
                      bool with_relu, float* pixels, float* y) {
    const Window win = l.out_window(b);
    const long end = std::min(l.k, g.first + g.channels);
    each_image(l, b, [&](long image, long first_tile) {
        for (long chunk = g.first; chunk < end; chunk += CHUNK) {
            for (long phase = 0; phase < l.phases; ++phase)
                each_tile(l, b, first_tile, [&](long tile, long py, long px) {
                    each_vector(l, chunk, end, pixels, [&](long k, long, float* part) {
                        tile_output<M>(m + tile * g.cols + phase * g.channels + k - g.first, l.plane(),
                                       part + l.phase_at(win, phase, py, px), win.cols * LANES, l.step);
                    });
                });
            each_vector(l, chunk, end, pixels, [&](long k, long lanes, float* part) {
                const vec shift = bias ? load_part(bias + k, lanes) : vec{};
                scatter(part, lanes, win, shift, with_relu, 0, y + (image * l.k + k) * l.out_pixels());
            });
        }
    });
}

// bias_sums[image][channel] gets the gradient's sum over the pixels, which is the bias's gradient.
template <int M>
void transform_output_adjoint(const Layer& l, const Block& b, const Group& g, const float* gy, const float* gate,
                              float* pixels, float* m, float* bias_sums) {
    const Window win = l.out_window(b);
    const long end = std::min(l.k, g.first + g.channels);
    each_image(l, b, [&](long image, long first_tile) {
        for (long chunk = g.first; chunk < end; chunk += CHUNK) {
            each_vector(l, chunk, end, pixels, [&](long k, long lanes, float* part) {
                const long at = (image * l.k + k) * l.out_pixels();
                const vec sum = gate ? gather<true>(gy + at, gate + at, lanes, win, part)
                                     : gather<false>(gy + at, nullptr, lanes, win, part);
                float* total = bias_sums + image * l.kp + k;
                store(total, b.below_another ? load(total) + sum : sum);
            });
            for (long phase = 0; phase < l.phases; ++phase)
                each_tile(l, b, first_tile, [&](long tile, long py, long px) {
                    each_vector(l, chunk, end, pixels, [&](long k, long, float* part) {
                        tile_output_adjoint<M>(part + l.phase_at(win, phase, py, px), win.cols * LANES, l.step,
                                               m + tile * g.cols + phase * g.channels + k - g.first, l.plane());
                    });
                });
        }
    });
}

}  // namespace composcope
