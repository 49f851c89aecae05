// The matrix product that the transformed convolutions consist of: c[rows][cols] (+)= a[rows][depth] b[depth][cols].
//
// A tile of c stays in registers over the whole depth: `WIDE` vectors by as many rows as there are registers for.
#pragma once
#include "prefetch.h"
#include "vectors.h"

// Without this GCC keeps the sums in memory.
#define COMPOSCOPE_UNROLL _Pragma("GCC unroll 32")

namespace composcope {

struct Matrix {
    const float* at;
    long row, col;  // steps between rows and between columns
};

constexpr int STRIP = REGISTERS == 32 ? 4 : 2;  // vectors of c's columns in one strip
// Beside the sums there is room for one row of b and one value of a; more than twelve sums hide all latency.
constexpr int most_rows(int wide) { return wide == 1 ? 12 : (REGISTERS - 1 - wide) / wide; }

// The strip that contains vector i of `vectors`: its first vector and how many it has. The last strip takes one more
// rather than leave a strip of one vector, whose products would wait for loads: 24 channels are 3 vectors of 8.
struct Strip {
    long first, wide;
};
inline Strip strip_of(long i, long vectors) {
    const long full = vectors <= STRIP + 1 ? 0 : ceil_div(vectors - STRIP - 1, STRIP);
    if (i < full * STRIP) return {i / STRIP * STRIP, STRIP};
    return {full * STRIP, vectors - full * STRIP};
}

template <int ROWS, int WIDE, bool ADD>
__attribute__((noinline)) void product_tile(Matrix a, const float* b, long b_row, float* c, long c_row, long depth) {
    vec sum[ROWS][WIDE];
    COMPOSCOPE_UNROLL for (int r = 0; r < ROWS; ++r)
        COMPOSCOPE_UNROLL for (int j = 0; j < WIDE; ++j) sum[r][j] = ADD ? load(c + r * c_row + j * LANES) : vec{};
    for (long d = 0; d < depth; ++d, b += b_row) {
        vec right[WIDE];
        COMPOSCOPE_UNROLL for (int j = 0; j < WIDE; ++j) right[j] = load(b + j * LANES);
        COMPOSCOPE_UNROLL for (int r = 0; r < ROWS; ++r) {
            const vec left = broadcast(a.at[r * a.row + d * a.col]);
            COMPOSCOPE_UNROLL for (int j = 0; j < WIDE; ++j) sum[r][j] += left * right[j];
        }
    }
    COMPOSCOPE_UNROLL for (int r = 0; r < ROWS; ++r)
        COMPOSCOPE_UNROLL for (int j = 0; j < WIDE; ++j) store(c + r * c_row + j * LANES, sum[r][j]);
}

template <int ROWS, int WIDE, bool ADD>
void product_rows(long rows, Matrix a, const float* b, long b_row, float* c, long c_row, long depth) {
    if (rows == ROWS) return product_tile<ROWS, WIDE, ADD>(a, b, b_row, c, c_row, depth);
    if constexpr (ROWS > 1) product_rows<ROWS - 1, WIDE, ADD>(rows, a, b, b_row, c, c_row, depth);
}

// One strip; its rows are cut into equal tiles, so that none is left with a few rows.
template <int WIDE, bool ADD>
void product_strip(long wide, Matrix a, const float* b, long b_row, float* c, long c_row, long rows, long depth,
                   Prefetch& prefetch) {
    if constexpr (WIDE > 1)
        if (wide < WIDE) return product_strip<WIDE - 1, ADD>(wide, a, b, b_row, c, c_row, rows, depth, prefetch);
    constexpr int most = most_rows(WIDE);
    const long tiles = ceil_div(rows, most);
    for (long i = 0; i < tiles; ++i) {
        const long r = rows * i / tiles, end = rows * (i + 1) / tiles;
        product_rows<most, WIDE, ADD>(end - r, {a.at + r * a.row, a.row, a.col}, b, b_row, c + r * c_row, c_row, depth);
        prefetch.some();
    }
}

// b_row == 0 says that b is packed strip by strip: each strip is [depth][its columns].
template <bool ADD>
void product(Matrix a, const float* b, long b_row, float* c, long rows, long depth, long cols, Prefetch& prefetch) {
    const long vectors = cols / LANES;
    for (long i = 0; i < vectors;) {
        const Strip strip = strip_of(i, vectors);
        const long j = i * LANES;
        product_strip<STRIP + 1, ADD>(strip.wide, a, b_row ? b + j : b + j * depth, b_row ? b_row : strip.wide * LANES,
                                      c + j, cols, rows, depth, prefetch);
        i += strip.wide;
    }
}

// About how many times a product calls Prefetch::some().
inline long prefetch_calls(long rows, long cols) {
    return ceil_div(rows, most_rows(STRIP)) * ceil_div(cols, STRIP * LANES);
}

}  // namespace composcope
