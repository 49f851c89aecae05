// Vectors of eight floats, the eight-channel planes the kernels work on, and a plain way to use threads.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#if !defined(__AVX2__) || !defined(__FMA__)
#error "this processor has no AVX2 and FMA"
#endif

namespace composcope {

constexpr int LANES = 8;
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loose_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

inline vec load(const float* p) { return *reinterpret_cast<const loose_vec*>(p); }
inline void store(float* p, vec v) { *reinterpret_cast<loose_vec*>(p) = v; }
inline vec all(float a) { return (vec)_mm256_set1_ps(a); }
inline long ceil_div(long a, long b) { return (a + b - 1) / b; }
inline long padded(long channels) { return ceil_div(channels, LANES) * LANES; }

inline __m256i lane_mask(long count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), index);
}

// Negative values to zero; a NaN stays a NaN.
inline vec relu(vec v) { return v < 0.0f ? vec{} : v; }

inline void transpose(vec r[LANES]) {
    __m256 a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps((__m256)r[i], (__m256)r[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps((__m256)r[i], (__m256)r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = (vec)_mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        r[i + 4] = (vec)_mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

// A window of an image: `rows` x `cols` pixels, its corner at (top, left), which may lie outside height x width.
struct Window {
    long height, width, top, left, rows, cols;
};

// Up to eight channel planes into buf[rows][cols][8], zero outside the image; where gate <= 0 the value is zero too.
// Returns the sum over the pixels.
inline vec gather(const float* planes, const float* gate, long lanes, const Window& win, float* buf) {
    vec sum = {};
    const long plane = win.height * win.width;
    const long x0 = std::max(0L, win.left), x1 = std::min(win.width, win.left + win.cols);
    for (long r = 0; r < win.rows; ++r) {
        float* row = buf + r * win.cols * LANES;
        const long y = win.top + r;
        const bool inside = y >= 0 && y < win.height && x1 > x0;
        const long before = inside ? x0 - win.left : win.cols;
        std::memset(row, 0, sizeof(float) * LANES * before);
        if (!inside) continue;
        std::memset(row + (x1 - win.left) * LANES, 0, sizeof(float) * LANES * (win.left + win.cols - x1));
        for (long x = x0; x < x1; x += LANES) {
            const long count = std::min<long>(LANES, x1 - x), at = y * win.width + x;
            const __m256i mask = lane_mask(count);
            vec v[LANES] = {};
            for (long i = 0; i < lanes; ++i) {
                v[i] = (vec)_mm256_maskload_ps(planes + i * plane + at, mask);
                if (gate) v[i] = (vec)_mm256_maskload_ps(gate + i * plane + at, mask) <= 0.0f ? vec{} : v[i];
            }
            transpose(v);
            for (long i = 0; i < count; ++i) {
                store(row + (x - win.left + i) * LANES, v[i]);
                sum += v[i];
            }
        }
    }
    return sum;
}

// The inside of buf[rows][cols][8] into the image's planes; the first `add_rows` rows are added to what is there.
inline void scatter(const float* buf, long lanes, const Window& win, vec bias, bool with_relu, long add_rows,
                    float* planes) {
    const long plane = win.height * win.width;
    const long x0 = std::max(0L, win.left), x1 = std::min(win.width, win.left + win.cols);
    for (long r = std::max(0L, -win.top); r < std::min(win.rows, win.height - win.top); ++r) {
        const float* row = buf + r * win.cols * LANES;
        for (long x = x0; x < x1; x += LANES) {
            const long count = std::min<long>(LANES, x1 - x), at = (win.top + r) * win.width + x;
            vec v[LANES] = {};
            for (long i = 0; i < count; ++i) {
                v[i] = load(row + (x - win.left + i) * LANES) + bias;
                if (with_relu) v[i] = relu(v[i]);
            }
            transpose(v);
            for (long i = 0; i < lanes; ++i) {
                float* to = planes + i * plane + at;
                if (r < add_rows) v[i] += (vec)_mm256_maskload_ps(to, lane_mask(count));
                if (count == LANES)
                    store(to, v[i]);
                else  // masked stores are slow on some processors
                    std::memcpy(to, &v[i], sizeof(float) * count);
            }
        }
    }
}

// fn(begin, end, worker) over [0, count) in equal parts; the parts do not change any result.
template <class Fn>
void parallel(long count, long threads, const Fn& fn) {
    threads = std::max(1L, std::min(threads, count));
    std::vector<std::thread> pool;
    long started = 1;
    try {
        for (; started < threads; ++started)
            pool.emplace_back(fn, count * started / threads, count * (started + 1) / threads, started);
    } catch (...) {  // no more threads to be had: the rest is done here
    }
    fn(0L, count / threads, 0L);
    for (; started < threads; ++started) fn(count * started / threads, count * (started + 1) / threads, started);
    for (auto& t : pool) t.join();
}

}  // namespace composcope
