"""Small files of the form of dSprites, 3D Shapes and MPI3D: the same arrays, with fewer values or tiny images."""

import math
from pathlib import Path

import numpy as np


def grid(*columns) -> np.ndarray:
    """Every combination, the last column varying fastest."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*columns, indexing="ij")], 1)


def public_file(name: str, folder: Path) -> Path:
    """Write the file of this name; what an image shows is a function of its row, so that rows can be told apart."""
    path = folder / name
    if name.startswith("dsprites"):
        turns = np.linspace(0, 2 * math.pi, 5)
        values = grid([1.0], [1.0, 2.0, 3.0], [0.5, 1.0], turns, np.linspace(0, 1, 4), np.linspace(0, 1, 4))
        images = np.zeros((len(values), 8, 8), np.uint8)
        rows = np.arange(len(values))
        images[rows, 2 + rows % 4, 2 + rows // 4 % 4] = 1
        images[rows, 0, 1 + rows // 16 % 5] = images[rows, 1, rows // 80 % 6] = 1
        images[(rows // 16) % 5 == 4] = images[(rows // 16) % 5 == 0]  # a full turn
        arrays = {"imgs": images, "latents_values": values, "metadata": np.array([{"not": "read"}], dtype=object)}
        np.savez_compressed(path, **arrays)
    elif name.startswith("3dshapes"):
        labels = grid([0.0, 0.5], [0.0, 0.5], [0.0, 0.1], [0.75, 1.25], [0.0, 1.0, 2.0, 3.0], [-30.0, 30.0])
        images = np.random.default_rng(0).integers(0, 256, (len(labels), 4, 5, 3), dtype=np.uint8)
        write(path, {"images": images, "labels": labels})
    else:
        rows = 4 * 4 * 2 * 3 * 3 * 40 * 40 if "complex" in name else 6 * 6 * 2 * 3 * 3 * 40 * 40
        numbers = np.arange(rows, dtype=np.uint32)
        images = np.stack([numbers % 256, numbers // 256 % 256, numbers // 65536], 1).astype(np.uint8)
        write(path, {"images": images.reshape(rows, 1, 1, 3)})
    return path


def write(path: Path, arrays) -> None:
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array)
    else:
        np.savez(path, **arrays)
