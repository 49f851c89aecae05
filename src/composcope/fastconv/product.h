// The matrix product the transformed convolutions consist of.
#pragma once
#include "common.h"

namespace composcope {

// c[rows][cols] (+)= a[rows][depth] b[depth][cols]

struct Matrix {
    const float* at;
    long row, col;  // steps
};

template <int R, int J, bool ADD>
void product_part(Matrix a, const float* b, long b_row, float* c, long c_row, long depth) {
    vec sum[R][J];
    for (int r = 0; r < R; ++r)
        for (int j = 0; j < J; ++j) sum[r][j] = ADD ? load(c + r * c_row + j * LANES) : vec{};
    for (long d = 0; d < depth; ++d, b += b_row) {
        vec right[J];
        for (int j = 0; j < J; ++j) right[j] = load(b + j * LANES);
        for (int r = 0; r < R; ++r) {
            const vec left = all(a.at[r * a.row + d * a.col]);
            for (int j = 0; j < J; ++j) sum[r][j] += left * right[j];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int j = 0; j < J; ++j) store(c + r * c_row + j * LANES, sum[r][j]);
}

// Rows in equal parts of at most six (twelve sums fill the registers), each part at full speed.
template <int J, bool ADD>
void product_strip(Matrix a, const float* b, long b_row, float* c, long c_row, long rows, long depth) {
    const long parts = ceil_div(rows, 6);
    for (long i = 0, r = 0; i < parts; ++i) {
        const long end = rows * (i + 1) / parts;
        const Matrix part = {a.at + r * a.row, a.row, a.col};
        float* to = c + r * c_row;
        switch (end - r) {
            case 6: product_part<6, J, ADD>(part, b, b_row, to, c_row, depth); break;
            case 5: product_part<5, J, ADD>(part, b, b_row, to, c_row, depth); break;
            case 4: product_part<4, J, ADD>(part, b, b_row, to, c_row, depth); break;
            case 3: product_part<3, J, ADD>(part, b, b_row, to, c_row, depth); break;
            case 2: product_part<2, J, ADD>(part, b, b_row, to, c_row, depth); break;
            default: product_part<1, J, ADD>(part, b, b_row, to, c_row, depth);
        }
        r = end;
    }
}

// b_row == 0 says that b lies in packed strips of sixteen columns (the last may have eight).
template <bool ADD>
void product(Matrix a, const float* b, long b_row, float* c, long rows, long depth, long cols) {
    long j = 0;
    for (; j + 2 * LANES <= cols; j += 2 * LANES)
        product_strip<2, ADD>(a, b_row ? b + j : b + j * depth, b_row ? b_row : 2 * LANES, c + j, cols, rows, depth);
    if (j < cols)
        product_strip<1, ADD>(a, b_row ? b + j : b + j * depth, b_row ? b_row : LANES, c + j, cols, rows, depth);
}

}  // namespace composcope
