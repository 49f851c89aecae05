// Between PyTorch's channel planes and pixels that hold LANES channels side by side.
#pragma once
#include <algorithm>
#include <cstring>

#include "vectors.h"

namespace composcope {

// A window of an image: `rows` x `cols` pixels, its corner at (top, left). It may reach beyond the image on all sides and
// contains all of the image's columns, so that the image's pixels within it are one run of memory in every plane.
struct Window {
    long height, width, top, left, rows, cols;

    long first_row() const { return std::max(0L, top); }
    long end_row() const { return std::min(height, top + rows); }
};

// Visits the image's pixels within a window in order; next() is where a pixel lies in pixels[rows][cols][LANES].
template <class Float>
struct Walk {
    long x = 0, width, gap;
    Float* at;

    Walk(const Window& win, Float* pixels)
        : width(win.width),
          gap((win.cols - win.width) * LANES),
          at(pixels + ((win.first_row() - win.top) * win.cols - win.left) * LANES) {}

    Float* next() {
        Float* here = at;
        at += LANES;
        if (++x == width) {
            x = 0;
            at += gap;
        }
        return here;
    }
};

// Zero in the part of pixels[rows][cols][LANES] that lies outside the image.
inline void clear_outside(const Window& win, float* pixels) {
    const long left = -win.left, right = win.cols - left - win.width;
    for (long r = 0; r < win.rows; ++r) {
        float* row = pixels + r * win.cols * LANES;
        const bool inside = win.top + r >= 0 && win.top + r < win.height;
        std::memset(row, 0, sizeof(float) * LANES * (inside ? left : win.cols));
        if (inside) std::memset(row + (left + win.width) * LANES, 0, sizeof(float) * LANES * right);
    }
}

// Loops over full vectors have a fixed length, so that the compiler keeps the vectors in registers.

// `count` pixels of `lanes` planes, transposed: v[pixel] holds the channels.
template <bool GATED>
inline void read_pixels(const float* planes, const float* gate, long plane, long lanes, long count, vec* v) {
    if (lanes == LANES && count >= LANES) {
        for (int i = 0; i < LANES; ++i) {
            v[i] = load(planes + i * plane);
            if (GATED) v[i] = gated(v[i], load(gate + i * plane));
        }
    } else {
        for (int i = 0; i < LANES; ++i) v[i] = vec{};
        for (long i = 0; i < lanes; ++i) {
            v[i] = load_part(planes + i * plane, count);
            if (GATED) v[i] = gated(v[i], load_part(gate + i * plane, count));
        }
    }
    transpose(v);
}

// `lanes` channel planes into pixels[rows][cols][LANES], zero outside the image; where gate <= 0 the value is zero too.
// Returns the sum over the pixels.
template <bool GATED>
vec gather(const float* planes, const float* gate, long lanes, const Window& win, float* pixels) {
    const long plane = win.height * win.width, end = win.end_row() * win.width;
    clear_outside(win, pixels);
    Walk<float> walk(win, pixels);
    vec sum = {}, v[LANES];
    const auto put = [&](vec value) {
        store(walk.next(), value);
        sum += value;
    };
    for (long p = win.first_row() * win.width; p < end; p += LANES) {
        read_pixels<GATED>(planes + p, GATED ? gate + p : nullptr, plane, lanes, end - p, v);
        if (end - p >= LANES)
            for (int i = 0; i < LANES; ++i) put(v[i]);
        else
            for (long i = 0; i < end - p; ++i) put(v[i]);
    }
    return sum;
}

// The image's part of pixels[rows][cols][LANES] into its planes; the window's first `added_rows` rows are added to what
// is there.
inline void scatter(const float* pixels, long lanes, const Window& win, vec bias, bool with_relu, long added_rows,
                    float* planes) {
    const long plane = win.height * win.width, end = win.end_row() * win.width;
    const long added = std::max(0L, win.top + added_rows) * win.width;  // pixels before this one are added
    Walk<const float> walk(win, pixels);
    for (long p = win.first_row() * win.width; p < end; p += LANES) {
        const long count = std::min<long>(LANES, end - p);
        vec v[LANES];
        for (int i = 0; i < LANES; ++i) {
            v[i] = (i < count ? load(walk.next()) : vec{}) + bias;
            if (with_relu) v[i] = relu(v[i]);
        }
        transpose(v);
        float* to = planes + p;
        if (count == LANES && lanes == LANES && p >= added) {
            for (int i = 0; i < LANES; ++i) store(to + i * plane, v[i]);
        } else {
            for (long i = 0; i < lanes; ++i, to += plane) {
                if (p < added) v[i] += load_part(to, std::min(count, added - p));
                store_part(to, v[i], count);
            }
        }
    }
}

}  // namespace composcope
