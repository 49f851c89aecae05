// One training step in one call: a batch is gathered, goes forwards and backwards through the parts, and AdamW updates
// the parameters. What PyTorch does in hundreds of operations costs a small network more than the arithmetic in them.
#include <cmath>
#include <cstring>

#include "step.h"

namespace composcope {
namespace {

void gather_rows(const float* rows, long size, const long* batch, long n, float* to) {
    for (long i = 0; i < n; ++i) std::memcpy(to + i * size, rows + batch[i] * size, sizeof(float) * size);
}

// The mean squared error, plus l1 times the mean absolute one, and its gradient.
double error(const Program& p, const long* batch, long n) {
    const float count = float(n * p.target_size), by_square = 2.0f / count, by_sign = float(p.l1) / count;
    double squared = 0, absolute = 0;
    for (long i = 0; i < n; ++i) {
        const float *y = p.output + i * p.target_size, *target = p.targets + batch[i] * p.target_size;
        float* g = p.error_gradient + i * p.target_size;
        vec squares = {}, sizes = {};
        each_vec(p.target_size, [&](long j, long left) {
            const vec d = load_part(y + j, left) - load_part(target + j, left);
            const vec sign = d > 0.0f ? broadcast(1.0f) : d < 0.0f ? broadcast(-1.0f) : vec{};
            squares += d * d;
            sizes += d * sign;
            store_part(g + j, by_square * d + by_sign * sign, left);
        });
        squared += total(squares);
        absolute += total(sizes);
    }
    return (squared + p.l1 * absolute) / count;
}

// As torch.nn.utils.clip_grad_norm_.
void clip_gradients(const Program& p) {
    double square = 0;
    for (const Parameter* q = p.parameters; q < p.parameters + p.parameter_count; ++q)
        for (long j = 0; j < q->count; ++j) square += double(q->gradient[j]) * q->gradient[j];
    const double factor = p.clip / (std::sqrt(square) + 1e-6);
    if (factor >= 1) return;  // a NaN is not below 1 either, and spreads
    for (const Parameter* q = p.parameters; q < p.parameters + p.parameter_count; ++q)
        for (long j = 0; j < q->count; ++j) q->gradient[j] *= float(factor);
}

// As torch.optim.AdamW's fused update.
void update(const Program& p, double rate, long step) {
    constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    const float kept = float(1 - rate * p.weight_decay), size = float(rate / (1 - std::pow(beta1, step)));
    const float root = float(std::sqrt(1 - std::pow(beta2, step)));
    for (const Parameter* q = p.parameters; q < p.parameters + p.parameter_count; ++q) {
        float *__restrict value = q->value, *__restrict mean = q->mean, *__restrict square = q->square;
        const float* __restrict gradient = q->gradient;
        for (long j = 0; j < q->count; ++j) {
            const float g = gradient[j];
            mean[j] += float(1 - beta1) * (g - mean[j]);
            square[j] = float(beta2) * square[j] + float(1 - beta2) * (g * g);
            value[j] = value[j] * kept - size * mean[j] / (std::sqrt(square[j]) / root + float(epsilon));
        }
    }
}

}  // namespace
}  // namespace composcope

// The samples of `batch` once; losses gets the error and the sum of the penalties. `step` counts updates from 1.
extern "C" void composcope_step(const composcope::Program* program, const long* batch, long n, double rate, long step,
                                double* losses) {
    const composcope::Program& p = *program;
    composcope::gather_rows(p.inputs, p.input_size, batch, n, p.input);
    for (long i = 0; i < p.part_count; ++i) p.parts[i].forward(p.parts[i], n);
    losses[0] = composcope::error(p, batch, n);
    for (long i = p.part_count - 1; i >= 0; --i) p.parts[i].backward(p.parts[i], n);
    losses[1] = 0;
    for (long i = 0; i < p.penalty_count; ++i) {
        p.penalties[i].forward(p.penalties[i], n);
        p.penalties[i].backward(p.penalties[i], n);
        losses[1] += *p.penalties[i].y;
    }
    if (p.clip > 0) composcope::clip_gradients(p);
    composcope::update(p, rate, step);
}
