// Vectors of LANES floats with the compiler's own vector types (GCC and Clang), so that one source serves all processors.
#pragma once
#include <utility>

namespace composcope {

// As many lanes as the widest register the compiler may use. Build flags set other numbers of lanes and registers, so
// that what another processor would run can be tested on this one.
#if defined(COMPOSCOPE_LANES)
constexpr int LANES = COMPOSCOPE_LANES;
#elif defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int LANES = 8;
#elif defined(__aarch64__)
constexpr int LANES = 4;
#else
#error "this processor has neither AVX2 with FMA nor NEON"
#endif

#if defined(COMPOSCOPE_REGISTERS)
constexpr int REGISTERS = COMPOSCOPE_REGISTERS;
#elif defined(__AVX512F__) || defined(__aarch64__)
constexpr int REGISTERS = 32;
#else
constexpr int REGISTERS = 16;
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float unaligned_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

inline vec load(const float* p) { return *reinterpret_cast<const unaligned_vec*>(p); }
inline void store(float* p, vec v) { *reinterpret_cast<unaligned_vec*>(p) = v; }
inline vec broadcast(float a) { return a - vec{}; }  // a - 0 is a, for -0 too
inline long ceil_div(long a, long b) { return (a + b - 1) / b; }
inline long padded(long channels) { return ceil_div(channels, LANES) * LANES; }

// The first `count` lanes; the others are zero, and no memory beyond the first ones is touched.
inline vec load_part(const float* p, long count) {
    if (count >= LANES) return load(p);
    vec v = {};
    for (long i = 0; i < count; ++i) v[i] = p[i];
    return v;
}

inline void store_part(float* p, vec v, long count) {
    if (count >= LANES) return store(p, v);
    for (long i = 0; i < count; ++i) p[i] = v[i];
}

// Negative values to zero; a NaN stays a NaN.
inline vec relu(vec v) { return v < 0.0f ? vec{} : v; }

// The value where the gate is above zero, else zero; a NaN in the gate lets the value through.
inline vec gated(vec v, vec gate) { return gate <= 0.0f ? vec{} : v; }

// ---- transposition: 4 x 4 within each 128 bits, then whole 128-bit blocks, so that every shuffle is one instruction

// Lane::at(i) says where lane i of the result comes from: 0 .. LANES - 1 is a, LANES .. 2 LANES - 1 is b
template <class Lane, int... I>
inline vec shuffle(vec a, vec b, Lane, std::integer_sequence<int, I...>) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, Lane::at(I)...);
#else
    typedef int index_vec __attribute__((vector_size(4 * LANES)));
    return __builtin_shuffle(a, b, index_vec{Lane::at(I)...});
#endif
}

template <class Lane>
inline vec shuffle(vec a, vec b) {
    return shuffle(a, b, Lane(), std::make_integer_sequence<int, LANES>());
}

// Within each four lanes: groups of SIZE lanes of a and b in turn, from the lower or the upper half.
template <int SIZE, int UPPER>
struct Interleave {
    static constexpr int at(int i) {
        const int lane = i % 4, group = lane / SIZE;
        return i - lane + UPPER * 2 + group / 2 * SIZE + lane % SIZE + group % 2 * LANES;
    }
};

// Blocks of SIZE lanes: the even ones of a and b in turn, or the odd ones.
template <int SIZE, int ODD>
struct Blocks {
    static constexpr int at(int i) {
        const int block = i / SIZE;
        return (block / 2 * 2 + ODD) * SIZE + i % SIZE + block % 2 * LANES;
    }
};

template <int SIZE>
inline void exchange_blocks(vec* rows) {
    for (int i = 0; i < LANES; ++i) {
        if (i & SIZE) continue;
        const vec a = rows[i], b = rows[i + SIZE];
        rows[i] = shuffle<Blocks<SIZE, 0>>(a, b);
        rows[i + SIZE] = shuffle<Blocks<SIZE, 1>>(a, b);
    }
}

inline void transpose(vec rows[LANES]) {
    for (vec* r = rows; r < rows + LANES; r += 4) {
        const vec a = shuffle<Interleave<1, 0>>(r[0], r[1]), b = shuffle<Interleave<1, 1>>(r[0], r[1]);
        const vec c = shuffle<Interleave<1, 0>>(r[2], r[3]), d = shuffle<Interleave<1, 1>>(r[2], r[3]);
        r[0] = shuffle<Interleave<2, 0>>(a, c);
        r[1] = shuffle<Interleave<2, 1>>(a, c);
        r[2] = shuffle<Interleave<2, 0>>(b, d);
        r[3] = shuffle<Interleave<2, 1>>(b, d);
    }
    if constexpr (LANES >= 8) exchange_blocks<4>(rows);
    if constexpr (LANES >= 16) exchange_blocks<8>(rows);
}

}  // namespace composcope
