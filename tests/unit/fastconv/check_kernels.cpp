// Every kernel against a direct convolution in float64, for the lanes and registers it is compiled with.
//
// Compiled together with the kernels, for this machine or for another one under an emulator. Prints lanes, registers and
// the number of cases; every wrong case has a line of its own, and the exit code is 1 if there is any.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "vectors.h"

extern "C" {
long composcope_lanes();
#define DECLARE(NAME)                                                                                                 \
    long composcope_##NAME##_scratch(const long*);                                                                    \
    void composcope_##NAME##_forward(const long*, const float*, const float*, const float*, int, float*, float*);     \
    void composcope_##NAME##_backward(const long*, const float*, const float*, const float*, const float*, float*,    \
                                      float*, float*, float*);
DECLARE(winograd)
DECLARE(winograd8)
DECLARE(narrow)
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Kernel {
    const char* name;
    bool up;
    decltype(&composcope_winograd_scratch) scratch;
    decltype(&composcope_winograd_forward) forward;
    decltype(&composcope_winograd_backward) backward;
};

const Kernel KERNELS[] = {
    {"3x3", false, composcope_winograd_scratch, composcope_winograd_forward, composcope_winograd_backward},
    {"doubling", true, composcope_winograd_scratch, composcope_winograd_forward, composcope_winograd_backward},
#if defined(COMPOSCOPE_LANES) ? COMPOSCOPE_LANES == 16 : defined(__AVX512F__)
    {"3x3 of eight", false, composcope_winograd8_scratch, composcope_winograd8_forward, composcope_winograd8_backward},
    {"doubling of eight", true, composcope_winograd8_scratch, composcope_winograd8_forward,
     composcope_winograd8_backward},
#endif
    {"narrow", false, composcope_narrow_scratch, composcope_narrow_forward, composcope_narrow_backward},
};

struct Shape {
    long n, c, k, h, w;
};

const Shape SHAPES[] = {
    {2, 64, 64, 14, 14},
    {3, 24, 24, 8, 8},   // vectors filled by half with sixteen lanes
    {17, 5, 3, 4, 4},    // several images to a block
    {2, 20, 70, 9, 13},  // several groups of output channels
    {1, 8, 8, 70, 31},   // several bands of tiles to an image
    {1, 4, 4, 3, 300},   // one row of tiles longer than a block
    {1, 75, 6, 5, 5},    // with sixteen lanes and 32 registers, a strip of five vectors
    {2, 90, 20, 6, 6},   // and with these, a strip of four and one of two
    {5, 3, 5, 1, 2},
};

constexpr double LIMIT = 1e-5;
constexpr float GUARD = 12345.0f;

double relative_error(const Floats& got, const Doubles& want) {
    double error = 0, norm = 1e-30;
    for (size_t i = 0; i < want.size(); ++i) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return std::sqrt(error / norm);  // NaN if a value is
}

// fn(output, input, weight) for every product of the direct convolution
template <class Fn>
void each_product(const Shape& s, bool up, const Fn& fn) {
    const long step = up ? 2 : 1, taps = up ? 4 : 3, height = step * s.h, width = step * s.w;
    for (long i = 0; i < s.n; ++i)
        for (long o = 0; o < s.k; ++o)
            for (long c = 0; c < s.c; ++c)
                for (long y = 0; y < s.h; ++y)
                    for (long x = 0; x < s.w; ++x)
                        for (long u = 0; u < taps; ++u)
                            for (long v = 0; v < taps; ++v) {
                                const long to_y = up ? 2 * y + u - 1 : y + 1 - u, to_x = up ? 2 * x + v - 1 : x + 1 - v;
                                if (to_y < 0 || to_y >= height || to_x < 0 || to_x >= width) continue;
                                const long kernel = up ? c * s.k + o : o * s.c + c;
                                fn(((i * s.k + o) * height + to_y) * width + to_x, ((i * s.c + c) * s.h + y) * s.w + x,
                                   (kernel * taps + u) * taps + v);
                            }
}

bool agrees(const Kernel& kernel, const Shape& s, long threads, bool relu, std::mt19937& rng) {
    const long pixels = (kernel.up ? 4 : 1) * s.h * s.w, taps = kernel.up ? 16 : 9;
    Floats x(s.n * s.c * s.h * s.w), w(s.c * s.k * taps), b(s.k), gy(s.n * s.k * pixels);
    std::normal_distribution<float> normal;
    for (Floats* values : {&x, &w, &b, &gy})
        for (float& value : *values) value = normal(rng);
    const long shape[7] = {s.n, s.c, s.k, s.h, s.w, kernel.up, threads}, size = kernel.scratch(shape);
    Floats scratch(size + 1, NAN), y(gy.size()), gx(x.size()), gw(w.size()), gb(s.k);
    scratch[size] = GUARD;
    kernel.forward(shape, x.data(), w.data(), b.data(), relu, y.data(), scratch.data());
    for (long i = 0; i < size; ++i) scratch[i] = NAN;
    kernel.backward(shape, gy.data(), relu ? y.data() : nullptr, x.data(), w.data(), gx.data(), gw.data(), gb.data(),
                    scratch.data());

    Doubles want_y(y.size()), want_gx(x.size()), want_gw(w.size()), want_gb(s.k), gated(gy.begin(), gy.end());
    for (size_t i = 0; i < y.size(); ++i) {
        const long channel = i / pixels % s.k;
        want_y[i] = b[channel];
        if (relu && y[i] <= 0) gated[i] = 0;  // the kernel's own decision: a value next to zero may fall on either side
        want_gb[channel] += gated[i];
    }
    each_product(s, kernel.up, [&](long to, long from, long weight) {
        want_y[to] += double(x[from]) * w[weight];
        want_gx[from] += gated[to] * w[weight];
        want_gw[weight] += gated[to] * x[from];
    });
    for (double& value : want_y)
        if (relu && value < 0) value = 0;

    const double errors[] = {relative_error(y, want_y), relative_error(gx, want_gx), relative_error(gw, want_gw),
                             relative_error(gb, want_gb)};
    bool right = scratch[size] == GUARD;
    for (double error : errors) right = right && error < LIMIT;
    if (!right)
        std::printf("WRONG: %s, %ld images, %ld -> %ld channels, %ld x %ld, relu %d, %ld threads: y %.1e, gx %.1e, "
                    "gw %.1e, gb %.1e\n", kernel.name, s.n, s.c, s.k, s.h, s.w, relu, threads, errors[0], errors[1],
                    errors[2], errors[3]);
    return right;
}

int main() {
    std::mt19937 rng(0);
    int cases = 0, wrong = 0;
    for (const Kernel& kernel : KERNELS)
        for (const Shape& shape : SHAPES)
            for (const bool relu : {false, true}) {
                ++cases;
                wrong += !agrees(kernel, shape, 1 + cases % 2, relu, rng);
            }
    std::printf("%ld lanes, %d registers: %d cases, %d wrong\n", composcope_lanes(), composcope::REGISTERS, cases,
                wrong);
    return wrong > 0;
}
