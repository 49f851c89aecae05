// The parts of a network between its convolutions, forward and backward, for a batch of n samples.
#include <cmath>
#include <cstring>

#include "product.h"
#include "step.h"

namespace composcope {
namespace {

// c[rows][cols] (+)= a[rows][depth] b[depth][cols] for any number of columns
template <bool ADD>
void multiply(Matrix a, const float* b, long b_row, float* c, long c_row, long rows, long depth, long cols) {
    Prefetch none;
    const long vectors = cols / LANES;
    for (long i = 0; i < vectors;) {
        const Strip strip = strip_of(i, vectors);
        product_strip<STRIP + 1, ADD>(strip.wide, a, b + i * LANES, b_row, c + i * LANES, c_row, rows, depth, none);
        i += strip.wide;
    }
    for (long j = vectors * LANES; j < cols; ++j)
        for (long r = 0; r < rows; ++r) {
            float sum = ADD ? c[r * c_row + j] : 0.0f;
            for (long d = 0; d < depth; ++d) sum += a.at[r * a.row + d * a.col] * b[d * b_row + j];
            c[r * c_row + j] = sum;
        }
}

// to[cols][rows] = from[rows][cols]; rows of `to` are to_row floats apart
void transpose_matrix(const float* from, long rows, long cols, float* to, long to_row) {
    for (long r = 0; r < rows; ++r)
        for (long c = 0; c < cols; ++c) to[c * to_row + r] = from[r * cols + c];
}

// out[channel] = sum over samples and pixels of g[sample][channel][pixel]
void sum_channels(const float* g, long n, long channels, long pixels, float* out) {
    for (long c = 0; c < channels; ++c) {
        vec sum = {};
        for (long i = 0; i < n; ++i) {
            const float* plane = g + (i * channels + c) * pixels;
            each_vec(pixels, [&](long j, long count) { sum += load_part(plane + j, count); });
        }
        out[c] = total(sum);
    }
}

// sum of a[j]^2
float squares(const float* a, long count) {
    vec sum = {};
    each_vec(count, [&](long j, long left) {
        const vec v = load_part(a + j, left);
        sum += v * v;
    });
    return total(sum);
}

}  // namespace
}  // namespace composcope

using namespace composcope;

extern "C" {

// ---- convolutions: sizes are the kernel's shape (whose number of images is set here) and whether ReLU follows

void composcope_convolution_forward(const Part& p, long n) {
    long shape[7];
    std::memcpy(shape, p.sizes, sizeof shape);
    shape[0] = n;
    p.kernel_forward(shape, p.x, p.values[0], p.values[1], p.sizes[7] != 0, p.y, p.scratch);
}

void composcope_convolution_backward(const Part& p, long n) {
    long shape[7];
    std::memcpy(shape, p.sizes, sizeof shape);
    shape[0] = n;
    p.kernel_backward(shape, p.gy, p.sizes[7] ? p.y : nullptr, p.x, p.values[0], p.gx, p.gradients[0], p.gradients[1],
                      p.scratch);
}

// ---- the first map, y = x w + bias: sizes are inputs, channels, pixels of a channel; w[inputs][channels][pixels]

void composcope_first_map_forward(const Part& p, long n) {
    const long inputs = p.sizes[0], channels = p.sizes[1], pixels = p.sizes[2], outputs = channels * pixels;
    for (long i = 0; i < n; ++i)
        for (long c = 0; c < channels; ++c)
            std::fill_n(p.y + (i * channels + c) * pixels, pixels, p.values[1][c]);
    multiply<true>({p.x, inputs, 1}, p.values[0], outputs, p.y, outputs, n, inputs, outputs);
}

void composcope_first_map_backward(const Part& p, long n) {
    const long inputs = p.sizes[0], channels = p.sizes[1], pixels = p.sizes[2], outputs = channels * pixels;
    multiply<false>({p.x, 1, inputs}, p.gy, outputs, p.gradients[0], outputs, inputs, n, outputs);
    sum_channels(p.gy, n, channels, pixels, p.gradients[1]);
}

// ---- a linear layer, y = w x + bias: sizes are inputs and outputs; w[outputs][inputs]

void composcope_linear_forward(const Part& p, long n) {
    const long inputs = p.sizes[0], outputs = p.sizes[1], columns = padded(n);
    float *x = p.scratch, *y = x + inputs * columns;  // samples innermost, so that w need not be transposed
    std::memset(x, 0, sizeof(float) * inputs * columns);
    transpose_matrix(p.x, n, inputs, x, columns);
    multiply<false>({p.values[0], inputs, 1}, x, columns, y, columns, outputs, inputs, columns);
    for (long i = 0; i < n; ++i)
        for (long o = 0; o < outputs; ++o) p.y[i * outputs + o] = y[o * columns + i] + p.values[1][o];
}

void composcope_linear_backward(const Part& p, long n) {
    const long inputs = p.sizes[0], outputs = p.sizes[1];
    multiply<false>({p.gy, 1, outputs}, p.x, inputs, p.gradients[0], inputs, outputs, n, inputs);
    for (long o = 0; o < outputs; ++o) p.gradients[1][o] = 0.0f;
    for (long i = 0; i < n; ++i)
        for (long o = 0; o < outputs; ++o) p.gradients[1][o] += p.gy[i * outputs + o];
    if (p.gx) multiply<false>({p.gy, outputs, 1}, p.values[0], inputs, p.gx, inputs, n, outputs, inputs);
}

// ---- functions of every number: sizes[0] is how many a sample has

void composcope_relu_forward(const Part& p, long n) {
    each_vec(n * p.sizes[0], [&](long j, long count) { store_part(p.y + j, relu(load_part(p.x + j, count)), count); });
}

void composcope_relu_backward(const Part& p, long n) {
    each_vec(n * p.sizes[0], [&](long j, long count) {
        store_part(p.gx + j, gated(load_part(p.gy + j, count), load_part(p.y + j, count)), count);
    });
}

void composcope_prelu_forward(const Part& p, long n) {  // max(x, 0) + slope * min(x, 0), with one slope
    const float slope = p.values[0][0];
    each_vec(n * p.sizes[0], [&](long j, long count) {
        const vec x = load_part(p.x + j, count);
        store_part(p.y + j, x > 0.0f ? x : slope * x, count);
    });
}

void composcope_prelu_backward(const Part& p, long n) {
    const float slope = p.values[0][0];
    p.gradients[0][0] = 0.0f;
    for (long i = 0; i < n; ++i) {  // sample by sample, so that rounding stays small
        vec sum = {};
        each_vec(p.sizes[0], [&](long k, long count) {
            const long j = i * p.sizes[0] + k;
            const vec x = load_part(p.x + j, count), gy = load_part(p.gy + j, count);
            sum += x > 0.0f ? vec{} : gy * x;
            store_part(p.gx + j, x > 0.0f ? gy : slope * gy, count);
        });
        p.gradients[0][0] += total(sum);
    }
}

void composcope_sigmoid_forward(const Part& p, long n) {
    for (long j = 0; j < n * p.sizes[0]; ++j) p.y[j] = 1.0f / (1.0f + std::exp(-p.x[j]));
}

void composcope_sigmoid_backward(const Part& p, long n) {
    for (long j = 0; j < n * p.sizes[0]; ++j) p.gx[j] = p.gy[j] * p.y[j] * (1.0f - p.y[j]);
}

// ---- the central part of a map: sizes are channels, height and width before, top, left, height and width after

void composcope_crop_forward(const Part& p, long n) {
    const long height = p.sizes[1], width = p.sizes[2], rows = p.sizes[5], cols = p.sizes[6];
    for (long plane = 0; plane < n * p.sizes[0]; ++plane)
        for (long r = 0; r < rows; ++r)
            std::memcpy(p.y + (plane * rows + r) * cols,
                        p.x + (plane * height + p.sizes[3] + r) * width + p.sizes[4], sizeof(float) * cols);
}

void composcope_crop_backward(const Part& p, long n) {
    const long height = p.sizes[1], width = p.sizes[2], rows = p.sizes[5], cols = p.sizes[6];
    std::memset(p.gx, 0, sizeof(float) * n * p.sizes[0] * height * width);
    for (long plane = 0; plane < n * p.sizes[0]; ++plane)
        for (long r = 0; r < rows; ++r)
            std::memcpy(p.gx + (plane * height + p.sizes[3] + r) * width + p.sizes[4],
                        p.gy + (plane * rows + r) * cols, sizeof(float) * cols);
}

// ---- batch normalisation: sizes are channels, pixels, and whether ReLU follows; constants are epsilon and momentum;
// values are weight, bias, running mean and running variance; scratch keeps each channel's mean and 1 / deviation

void composcope_batch_norm_forward(const Part& p, long n) {
    const long channels = p.sizes[0], pixels = p.sizes[1];
    const double count = double(n) * pixels, momentum = p.constants[1];
    for (long c = 0; c < channels; ++c) {
        double sum = 0, spread = 0;
        for (long i = 0; i < n; ++i) {
            vec part = {};
            const float* x = p.x + (i * channels + c) * pixels;
            each_vec(pixels, [&](long j, long left) { part += load_part(x + j, left); });
            sum += total(part);
        }
        const float mean = float(sum / count);
        for (long i = 0; i < n; ++i) {
            vec part = {};
            const float* x = p.x + (i * channels + c) * pixels;
            each_vec(pixels / LANES * LANES, [&](long j, long) {
                const vec d = load(x + j) - mean;
                part += d * d;
            });
            for (long j = pixels / LANES * LANES; j < pixels; ++j) spread += double(x[j] - mean) * (x[j] - mean);
            spread += total(part);
        }
        const float scale = float(1 / std::sqrt(spread / count + p.constants[0]));
        p.scratch[2 * c] = mean;
        p.scratch[2 * c + 1] = scale;
        p.values[2][c] = float((1 - momentum) * p.values[2][c] + momentum * mean);
        p.values[3][c] = float((1 - momentum) * p.values[3][c] + momentum * spread / (count - 1));
        const float weight = p.values[0][c], bias = p.values[1][c];
        for (long i = 0; i < n; ++i) {
            const long at = (i * channels + c) * pixels;
            each_vec(pixels, [&](long j, long left) {
                const vec y = (load_part(p.x + at + j, left) - mean) * scale * weight + bias;
                store_part(p.y + at + j, p.sizes[2] ? relu(y) : y, left);
            });
        }
    }
}

void composcope_batch_norm_backward(const Part& p, long n) {
    const long channels = p.sizes[0], pixels = p.sizes[1];
    const float count = float(n * pixels);
    for (long c = 0; c < channels; ++c) {
        const float mean = p.scratch[2 * c], scale = p.scratch[2 * c + 1];
        const auto gradient = [&](long j, long left) {
            const vec g = load_part(p.gy + j, left);
            return p.sizes[2] ? gated(g, load_part(p.y + j, left)) : g;
        };
        double sum = 0, along = 0;  // of the gradient, and of the gradient times the normalised value
        for (long i = 0; i < n; ++i) {
            vec part = {}, product = {};
            const long at = (i * channels + c) * pixels;
            each_vec(pixels, [&](long j, long left) {
                const vec g = gradient(at + j, left);
                part += g;
                product += g * (load_part(p.x + at + j, left) - mean);
            });
            sum += total(part);
            along += total(product) * scale;
        }
        p.gradients[0][c] = float(along);
        p.gradients[1][c] = float(sum);
        const float factor = p.values[0][c] * scale, first = float(sum) / count, second = float(along) / count * scale;
        for (long i = 0; i < n; ++i) {
            const long at = (i * channels + c) * pixels;
            each_vec(pixels, [&](long j, long left) {
                const vec x = load_part(p.x + at + j, left) - mean;
                store_part(p.gx + at + j, factor * (gradient(at + j, left) - first - x * second), left);
            });
        }
    }
}

// ---- one factor's low-rank matrices, M_k = sum over r of weight_kr v_kr u_kr' with v and u of unit length, and their
// sum over a sample's code, y = sum over k of code_k M_k
//
// sizes are values, rank, height, width, the code's whole length, where the factor's code begins, the output's floats
// in a sample and where the factor's begin; parameters are v, weight and u

namespace {

struct Embedding {
    long values, rank, height, width, code, first, outputs, channel;
    long wide, deep;  // width and rank in whole vectors
    float *matrices, *v, *u, *ut /* u transposed */, *v_length, *u_length, *along_v, *along_u;
    long size = 0;  // of them all


    Embedding(const long* sizes, float* scratch)
        : values(sizes[0]), rank(sizes[1]), height(sizes[2]), width(sizes[3]), code(sizes[4]), first(sizes[5]),
          outputs(sizes[6]), channel(sizes[7]), wide(padded(width)), deep(padded(rank)) {
        const auto take = [&](long count) {
            const long at = size;
            size += count;
            return scratch ? scratch + at : nullptr;
        };
        matrices = take(values * pixels() + LANES);  // a row's last vector may reach beyond the matrices
        v = take(values * rank * height);
        u = take(values * rank * wide);
        ut = take(values * width * deep);
        v_length = take(values * rank);
        u_length = take(values * rank);
        along_v = take(height * deep);
        along_u = take(wide);
    }
    explicit Embedding(const Part& p) : Embedding(p.sizes, p.scratch) {}
    long pixels() const { return height * width; }
};

constexpr float SHORTEST = 1e-12f;  // as torch.nn.functional.normalize has it

float normalise(const float* from, long count, float* to) {
    const float length = std::max(std::sqrt(squares(from, count)), SHORTEST);
    for (long j = 0; j < count; ++j) to[j] = from[j] / length;
    return length;
}

// to[j] (+)= sum over k of code[k] rows[k][j], leaving out the many zeros of one-hot codes
void weigh(const float* code, long values, const float* rows, long count, float* to) {
    std::memset(to, 0, sizeof(float) * count);
    for (long k = 0; k < values; ++k) {
        const float factor = code[k];
        const float* row = rows + k * count;
        if (factor == 0.0f) continue;
        each_vec(count, [&](long j, long left) {
            store_part(to + j, load_part(to + j, left) + factor * load_part(row + j, left), left);
        });
    }
}

}  // namespace

// Floats of scratch to provide, kept from the forward pass to the backward one.
long composcope_embedding_scratch(const long* sizes) { return Embedding(sizes, nullptr).size; }

void composcope_embedding_forward(const Part& p, long n) {
    const Embedding e(p);
    for (long k = 0; k < e.values; ++k) {
        float *v = e.v + k * e.rank * e.height, *u = e.u + k * e.rank * e.wide, *ut = e.ut + k * e.width * e.deep;
        for (long r = 0; r < e.rank; ++r) {
            const long at = k * e.rank + r;
            e.v_length[at] = normalise(p.values[0] + at * e.height, e.height, v + r * e.height);
            e.u_length[at] = normalise(p.values[2] + at * e.width, e.width, u + r * e.wide);
            for (long x = 0; x < e.width; ++x) ut[x * e.deep + r] = u[r * e.wide + x];
        }
        for (long y = 0; y < e.height; ++y)
            each_vec(e.width, [&](long x, long left) {
                vec sum = {};
                for (long r = 0; r < e.rank; ++r)
                    sum += p.values[1][k * e.rank + r] * v[r * e.height + y] * load(u + r * e.wide + x);
                store_part(e.matrices + k * e.pixels() + y * e.width + x, sum, left);
            });
    }
    for (long i = 0; i < n; ++i)
        weigh(p.x + i * e.code + e.first, e.values, e.matrices, e.pixels(), p.y + i * e.outputs + e.channel);
}

// With G the gradient of M and s = v' G u: weight gets s, v gets (G u - s v) weight / |v|, u gets (G'v - s u) weight / |u|.
void composcope_embedding_backward(const Part& p, long n) {
    const Embedding e(p);
    const long pixels = e.pixels();
    float *g = e.matrices, *along_v = e.along_v, *along_u = e.along_u;
    std::memset(g, 0, sizeof(float) * e.values * pixels);
    for (long i = 0; i < n; ++i)
        for (long k = 0; k < e.values; ++k) {
            const float factor = p.x[i * e.code + e.first + k];
            const float* gy = p.gy + i * e.outputs + e.channel;
            if (factor == 0.0f) continue;
            each_vec(pixels, [&](long j, long left) {
                float* to = g + k * pixels + j;
                store_part(to, load_part(to, left) + factor * load_part(gy + j, left), left);
            });
        }
    for (long k = 0; k < e.values; ++k, g += pixels) {
        const float *v = e.v + k * e.rank * e.height, *u = e.u + k * e.rank * e.wide, *ut = e.ut + k * e.width * e.deep;
        for (long y = 0; y < e.height; ++y)  // along_v[y][r] = sum over x of G[y][x] u[r][x]
            each_vec(e.deep, [&](long r, long) {
                vec sum = {};
                for (long x = 0; x < e.width; ++x) sum += g[y * e.width + x] * load(ut + x * e.deep + r);
                store(along_v + y * e.deep + r, sum);
            });
        for (long r = 0; r < e.rank; ++r) {
            const long at = k * e.rank + r;
            each_vec(e.width, [&](long x, long) {  // along_u[x] = sum over y of G[y][x] v[r][y]
                vec sum = {};
                for (long y = 0; y < e.height; ++y) sum += v[r * e.height + y] * load(g + y * e.width + x);
                store(along_u + x, sum);
            });
            float shared = 0.0f;
            for (long y = 0; y < e.height; ++y) shared += along_v[y * e.deep + r] * v[r * e.height + y];
            const float weight = p.values[1][at], by_v = weight / e.v_length[at], by_u = weight / e.u_length[at];
            p.gradients[1][at] = shared;
            for (long y = 0; y < e.height; ++y)
                p.gradients[0][at * e.height + y] = (along_v[y * e.deep + r] - shared * v[r * e.height + y]) * by_v;
            for (long x = 0; x < e.width; ++x)
                p.gradients[2][at * e.width + x] = (along_u[x] - shared * u[r * e.wide + x]) * by_u;
        }
    }
}

// ---- penalties: the entropy of weights' shares and the variance of vectors; sizes are rows and their length

constexpr float LEAST_ENERGY = 1e-12f;

// Scratch keeps every row's logarithms of its shares, its energy and the term beside them in the gradient.
void composcope_entropy_forward(const Part& p, long) {
    const long rows = p.sizes[0], length = p.sizes[1];
    double sum = 0;
    for (long k = 0; k < rows; ++k) {
        const float *weight = p.values[0] + k * length, own = squares(weight, length);
        float *logarithms = p.scratch + k * (length + 2), energy = std::max(own, LEAST_ENERGY);
        double entropy = 0;
        for (long r = 0; r < length; ++r) {
            const float share = weight[r] * weight[r] / energy;
            logarithms[r] = share <= 0.0f ? 0.0f : std::log(share);  // a NaN is not hidden
            entropy -= double(share) * logarithms[r];
        }
        logarithms[length] = energy;
        logarithms[length + 1] = own < LEAST_ENERGY ? 1.0f : float(entropy);
        sum += entropy;
    }
    p.y[0] = float(p.constants[0] * sum);
}

// With H the entropy, dH / dw_r = -2 w_r / energy (ln share_r + H), or + 1 where the energy is the constant in its place.
void composcope_entropy_backward(const Part& p, long) {
    const long rows = p.sizes[0], length = p.sizes[1];
    for (long k = 0; k < rows; ++k) {
        const float* logarithms = p.scratch + k * (length + 2);
        const float factor = float(-2 * p.constants[0]) / logarithms[length], other = logarithms[length + 1];
        for (long r = 0; r < length; ++r)
            p.gradients[0][k * length + r] += factor * p.values[0][k * length + r] * (logarithms[r] + other);
    }
}

void composcope_variance_forward(const Part& p, long) {
    const long rows = p.sizes[0], length = p.sizes[1];
    double sum = 0;
    for (long k = 0; k < rows; ++k) {
        const float* vector = p.values[0] + k * length;
        float mean = 0.0f, spread = 0.0f;
        for (long j = 0; j < length; ++j) mean += vector[j];
        mean /= float(length);
        for (long j = 0; j < length; ++j) spread += (vector[j] - mean) * (vector[j] - mean);
        sum += spread;
        p.scratch[k] = mean;
    }
    p.y[0] = float(p.constants[0] * sum / double(length - 1));
}

void composcope_variance_backward(const Part& p, long) {
    const long rows = p.sizes[0], length = p.sizes[1];
    const float factor = float(2 * p.constants[0] / double(length - 1));
    for (long k = 0; k < rows; ++k)
        for (long j = 0; j < length; ++j)
            p.gradients[0][k * length + j] += factor * (p.values[0][k * length + j] - p.scratch[k]);
}
}
