// What Python describes of a network, once, for its training steps (step.py has the same structures).
#pragma once
#include "vectors.h"

namespace composcope {

using KernelForward = void (*)(const long*, const float*, const float*, const float*, int, float*, float*);
using KernelBackward = void (*)(const long*, const float*, const float*, const float*, const float*, float*, float*,
                                float*, float*);

// One part of the network. Maps and gradients of a batch lie sample by sample; gx is null where nobody needs it.
struct Part {
    void (*forward)(const Part&, long n);
    void (*backward)(const Part&, long n);
    long sizes[8];  // their meaning is the part's own
    double constants[2];
    const float* x;
    float *y, *gx;
    const float* gy;
    float *values[4], *gradients[4];  // parameters; backward overwrites their gradients
    KernelForward kernel_forward;     // of a convolution
    KernelBackward kernel_backward;
    float* scratch;
};

// A term of the loss that depends on parameters alone: forward writes its value to y, backward adds to the gradients.
using Penalty = Part;

struct Parameter {
    float *value, *gradient, *mean, *square;
    long count;
};

struct Program {
    const Part* parts;
    const Penalty* penalties;
    const Parameter* parameters;
    long part_count, penalty_count, parameter_count;
    const float *inputs, *targets;  // the whole training set
    long input_size, target_size;   // floats of one sample
    float *input, *error_gradient;  // of a batch
    const float* output;
    double l1, clip, weight_decay;  // no clipping if clip is 0
};

// ---- loops over `count` floats, LANES at a time; fn(index, floats left) is called for every vector

template <class Fn>
inline void each_vec(long count, const Fn& fn) {
    long i = 0;
    for (; i + LANES <= count; i += LANES) fn(i, LANES);
    if (i < count) fn(i, count - i);
}

inline float total(vec v) {
    float sum = 0.0f;
    for (int lane = 0; lane < LANES; ++lane) sum += v[lane];
    return sum;
}

}  // namespace composcope
