// Memory that will be needed soon, requested a little at a time while the products keep the arithmetic units busy.
#pragma once
#include <algorithm>

#include "vectors.h"

namespace composcope {

// Activations of the next block are worth requesting everywhere (2 to 4 % of a layer with eight lanes). The next point's
// weights are worth it on a Xeon with sixteen lanes, a tenth of a doubling layer; with eight lanes it costs as much.
constexpr bool PREFETCHES_WEIGHTS = LANES == 16;

class Prefetch {
    static constexpr long LINE = 16;  // floats in a cache line
    struct Run {
        const float *at, *end;
        long step;  // floats requested at a time
        bool write;
    };
    Run runs[6];
    int count = 0;

  public:
    // `length` floats, spread evenly over so many calls of some()
    void add(const float* at, long length, long calls, bool write = false) {
        runs[count++] = {at, at + length, ceil_div(ceil_div(length, LINE), std::max(1L, calls)) * LINE, write};
    }
    int size() const { return count; }
    void forget_after(int size) { count = size; }
    void some() {
        for (Run* run = runs; run < runs + count; ++run) {
            const float* stop = std::min(run->end, run->at + run->step);
            if (run->write)
                for (; run->at < stop; run->at += LINE) __builtin_prefetch(run->at, 1, 2);
            else
                for (; run->at < stop; run->at += LINE) __builtin_prefetch(run->at, 0, 2);
        }
    }
};

}  // namespace composcope
