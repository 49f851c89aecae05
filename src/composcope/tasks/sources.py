"""Rows of large arrays in .npz and .h5 files, read when they are needed. No pickled object is ever loaded."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from composcope.plain import npy_header

# Compressed arrays cannot be read from the middle: the rows that are wanted are kept in memory, up to this many bytes.
MAX_KEPT = 4 * 2**30
BLOCK = 2**24


class Source:
    """Arrays of one file by name."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ValueError(f"file not found: {str(path)!r}")
        self.path = path

    def shape(self, name: str) -> tuple[int, ...]:
        raise NotImplementedError

    def rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        """The array's rows in this order; `rows` are distinct."""
        raise NotImplementedError

    def whole(self, name: str) -> np.ndarray:
        return self.rows(name, np.arange(self.shape(name)[0]))


class H5(Source):
    """A file of HDF5; needs h5py."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            import h5py
        except ImportError:
            raise ValueError(f"{str(path)!r}: reading .h5 files needs h5py; pip install 'composcope[data]'") from None
        try:
            self.file = h5py.File(path, "r")
        except OSError as error:
            raise ValueError(f"{str(path)!r} is not an HDF5 file: {error}") from None

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._array(name).shape)

    def rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        order = rows.argsort()  # h5py reads in order only
        read = self._array(name)[rows[order]]
        return read[order.argsort()]

    def _array(self, name: str):  # type: ignore[no-untyped-def]  # h5py has no types
        if name not in self.file:
            raise ValueError(f"{str(self.path)!r} has no array {name!r}; it has {', '.join(self.file)}")
        return self.file[name]


class Npz(Source):
    """A file of numpy.savez or savez_compressed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            with zipfile.ZipFile(path) as archive:
                self.members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        except zipfile.BadZipFile as error:
            raise ValueError(f"{str(path)!r} is not an .npz file: {error}") from None

    def shape(self, name: str) -> tuple[int, ...]:
        with zipfile.ZipFile(self.path) as archive, archive.open(self._member(name)) as file:
            return _header(file, self.path)[0]

    def rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        member = self._member(name)
        if self.stored(name):
            with self.path.open("rb") as file:
                file.seek(member.header_offset + 26)
                name_length, extra_length = np.frombuffer(file.read(4), "<u2").tolist()
                file.seek(member.header_offset + 30 + name_length + extra_length)
                shape, dtype = _header(file, self.path)
                return np.asarray(np.memmap(self.path, dtype, "r", file.tell(), shape)[rows])
        with zipfile.ZipFile(self.path) as archive, archive.open(member) as file:
            shape, dtype = _header(file, self.path)
            kept = np.empty((len(rows), *shape[1:]), dtype)
            if kept.nbytes > MAX_KEPT:
                raise ValueError(
                    f"{str(self.path)!r}: {len(rows)} rows of {name!r} take {kept.nbytes / 2**30:.1f} GB; choose fewer "
                    "values of the factors (keep=)"
                )
            order = rows.argsort()
            for start, block in _blocks(file, shape, dtype):
                first, last = np.searchsorted(rows[order], [start, start + len(block)])
                kept[order[first:last]] = block[rows[order[first:last]] - start]
            return kept

    def stored(self, name: str) -> bool:
        """Whether the array is not compressed, so that any row can be read by itself."""
        return self._member(name).compress_type == zipfile.ZIP_STORED

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self.members:
            raise ValueError(f"{str(self.path)!r} has no array {name!r}; it has {', '.join(self.members)}")
        return self.members[name]


def _header(file: Any, path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and type at the head of a .npy file; what follows are the numbers."""
    try:
        shape, fortran, dtype = npy_header(file)
    except ValueError as error:
        raise ValueError(f"{str(path)!r} holds an array that cannot be read: {error}") from None
    if fortran or dtype.hasobject:
        raise ValueError(f"{str(path)!r} holds an array of {dtype} that is not stored row by row, as plain numbers")
    return shape, dtype


def _blocks(file: Any, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[tuple[int, np.ndarray]]:
    """The array's rows from first to last, some at a time, each with its first row's number."""
    row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    count = max(1, BLOCK // max(1, row))
    for start in range(0, shape[0], count):
        rows = min(count, shape[0] - start)
        content = file.read(rows * row)
        if len(content) < rows * row:
            raise ValueError("the file ends in the middle of an array")
        yield start, np.frombuffer(content, dtype).reshape(rows, *shape[1:])


def opened(path: Path) -> Source:
    """The file's arrays, by how its name ends."""
    if path.suffix == ".npz":
        return Npz(path)
    if path.suffix in (".h5", ".hdf5"):
        return H5(path)
    raise ValueError(f"{str(path)!r}: a file that ends in .npz, .h5 or .hdf5 is needed")
