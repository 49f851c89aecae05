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

// Vectors of eight lie side by side in memory, so that a processor with sixteen lanes takes two of them at once.
#if defined(__AVX512F__)
constexpr bool PAIRS = LANES == 8;
#else
constexpr bool PAIRS = false;
#endif
typedef float pair __attribute__((vector_size(PAIRS ? 8 * LANES : 4 * LANES)));
typedef float unaligned_pair __attribute__((vector_size(PAIRS ? 8 * LANES : 4 * LANES), aligned(4), may_alias));
inline pair load_pair(const float* p) { return *reinterpret_cast<const unaligned_pair*>(p); }
inline void store_pair(float* p, pair v) { *reinterpret_cast<unaligned_pair*>(p) = v; }

constexpr int STRIP = REGISTERS == 32 ? 4 : 2;  // vectors of c's columns in one strip
constexpr int pairs(int wide) { return PAIRS ? wide / 2 : 0; }
constexpr int singles(int wide) { return wide - 2 * pairs(wide); }
// Beside the sums there is room for one row of b and one value of a; more than twelve sums hide all latency.
constexpr int most_rows(int wide) {
    const int registers = pairs(wide) + singles(wide);
    return registers == 1 ? 12 : (REGISTERS - 1 - registers) / registers;
}

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
    constexpr int TWO = pairs(WIDE), ONE = singles(WIDE), LAST = 2 * TWO * LANES;  // the pairs come first
    pair sum_two[ROWS][TWO + 1];
    vec sum[ROWS][ONE + 1];
    COMPOSCOPE_UNROLL for (int r = 0; r < ROWS; ++r) {
        const float* row = c + r * c_row;
        COMPOSCOPE_UNROLL for (int j = 0; j < TWO; ++j) sum_two[r][j] = ADD ? load_pair(row + 2 * j * LANES) : pair{};
        COMPOSCOPE_UNROLL for (int j = 0; j < ONE; ++j) sum[r][j] = ADD ? load(row + LAST + j * LANES) : vec{};
    }
    for (long d = 0; d < depth; ++d, b += b_row) {
        pair right_two[TWO + 1];
        vec right[ONE + 1];
        COMPOSCOPE_UNROLL for (int j = 0; j < TWO; ++j) right_two[j] = load_pair(b + 2 * j * LANES);
        COMPOSCOPE_UNROLL for (int j = 0; j < ONE; ++j) right[j] = load(b + LAST + j * LANES);
        COMPOSCOPE_UNROLL for (int r = 0; r < ROWS; ++r) {
            const float left = a.at[r * a.row + d * a.col];
            COMPOSCOPE_UNROLL for (int j = 0; j < TWO; ++j) sum_two[r][j] += (left - pair{}) * right_two[j];
            COMPOSCOPE_UNROLL for (int j = 0; j < ONE; ++j) sum[r][j] += broadcast(left) * right[j];
        }
    }
    COMPOSCOPE_UNROLL for (int r = 0; r < ROWS; ++r) {
        float* row = c + r * c_row;
        COMPOSCOPE_UNROLL for (int j = 0; j < TWO; ++j) store_pair(row + 2 * j * LANES, sum_two[r][j]);
        COMPOSCOPE_UNROLL for (int j = 0; j < ONE; ++j) store(row + LAST + j * LANES, sum[r][j]);
    }
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
