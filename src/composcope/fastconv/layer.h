// A convolution layer, and how it is cut into blocks of tiles and groups of output channels.
#pragma once
#include <algorithm>

#include "planes.h"
#include "tiles.h"

namespace composcope {

// Tiles of a block, about: 36 points x 48 tiles x 64 channels are 440 kB, which a second-level cache holds from the first
// transform to the last. Between 48 and 72 there was no difference.
constexpr long BLOCK_TILES = 48;
// Transformed output channels of a group. A doubling layer has four times its output channels (one set for every phase);
// in groups, a block of them takes no more of the cache than that of a 3x3 layer.
constexpr long GROUP_COLS = 64;
constexpr long CHUNK = 16;      // channels transformed together: they fill a cache line
constexpr long PLANE_GAP = 16;  // floats; keeps the 36 planes of a block out of one another's cache sets

// Some tile rows of some images.
struct Block {
    long first_image, end_image, first_row, end_row;
    bool below_another;  // the block above has written the rows of pixels they share
    long tiles;
};

// Some output channels: `cols` transformed ones, phase by phase.
struct Group {
    long first, channels, cols;
    long weights;  // where the group's begin
};

struct Layer {
    long n, c, k, h, w, up, threads;
    long step, m, phases, cp, kp;                   // cp, kp: channels in whole vectors
    long tile_rows, tile_cols;                      // of one image
    long block_images, block_rows, bands, batches;  // the blocks: `batches` of images x `bands` of tile rows
    long group_channels;

    explicit Layer(const long* s) : n(s[0]), c(s[1]), k(s[2]), h(s[3]), w(s[4]), up(s[5]), threads(s[6]) {
        step = up ? 2 : 1;
        m = up ? 5 : 4;
        phases = up ? 4 : 1;
        cp = padded(c);
        kp = padded(k);
        tile_rows = ceil_div(h + up, m);
        tile_cols = ceil_div(w + up, m);
        const long image_tiles = tile_rows * tile_cols;
        block_images = std::min(n, std::max(1L, BLOCK_TILES / image_tiles));
        bands = image_tiles <= BLOCK_TILES * 4 / 3 ? 1 : ceil_div(tile_rows, std::max(1L, BLOCK_TILES / tile_cols));
        block_rows = ceil_div(tile_rows, bands);
        bands = ceil_div(tile_rows, block_rows);
        batches = ceil_div(n, block_images);
        group_channels = std::min(kp, GROUP_COLS / phases);
    }

    Block block(long batch, long band) const {
        const long image = batch * block_images, end_image = std::min(n, image + block_images);
        const long row = band * block_rows, end_row = std::min(tile_rows, row + block_rows);
        return {image, end_image, row, end_row, band > 0, (end_image - image) * (end_row - row) * tile_cols};
    }
    long groups() const { return ceil_div(kp, group_channels); }
    Group group(long i) const {
        const long first = i * group_channels, channels = std::min(group_channels, kp - first);
        return {first, channels, phases * channels, POINTS * cp * phases * first};
    }

    // ---- sizes of working memory, in floats

    long weights() const { return POINTS * cp * phases * kp; }
    long plane() const {  // one point of a block, before or after the product
        return block_images * block_rows * tile_cols * std::max(cp, phases * group_channels) + PLANE_GAP;
    }
    long planes() const { return POINTS * plane(); }
    long pixels() const { return LANES * (step * m * block_rows + 2) * (step * m * tile_cols + 2); }
    long chunk_pixels() const { return CHUNK / LANES * pixels(); }

    // ---- the pixels of one image that a block's tile rows cover

    long in_pixels() const { return h * w; }
    long out_pixels() const { return step * h * step * w; }
    Window in_window(const Block& b) const {
        return {h, w, m * b.first_row - 1, -1, m * (b.end_row - b.first_row) + TILE - m, m * tile_cols + TILE - m};
    }
    Window out_window(const Block& b) const {
        const long margin = step - 1, rows = b.end_row - b.first_row;
        return {step * h, step * w, step * m * b.first_row - margin, -margin, step * m * rows, step * m * tile_cols};
    }
    // where a tile's first pixel of a phase lies in the window of outputs; phase (1, 1) comes first, as it is shifted
    long phase_at(const Window& win, long phase, long y, long x) const {
        const long row = step * (y + 1) - 1 - phase / 2, col = step * (x + 1) - 1 - phase % 2;
        return (row * win.cols + col) * LANES;
    }

    // ---- PyTorch's weight: steps between channels, and where tap (u, v) of a phase lies

    long out_step() const { return up ? 16 : 9 * c; }
    long in_step() const { return up ? 16 * k : 9; }
    long tap(long phase, long u, long v) const {
        return up ? (3 - phase / 2 - 2 * u) * 4 + (3 - phase % 2 - 2 * v) : u * 3 + v;
    }
};

}  // namespace composcope
