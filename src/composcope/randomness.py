"""Randomness as an argument: one seed per run, one generator per use."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def derived_seed(seed: int, use: str) -> int:
    """A separate seed per use, so that drawing more numbers for one use leaves the others unchanged."""
    # Not Python's hash(), which differs between processes. 56 bits fit into torch's 64-bit seed.
    return int.from_bytes(hashlib.sha256(f"{seed}/{use}".encode()).digest()[:7], "big")


def generator(seed: int, use: str) -> torch.Generator:
    return torch.Generator().manual_seed(derived_seed(seed, use))


@contextmanager
def seeded(seed: int, use: str) -> Iterator[None]:
    """Seed torch's global generator within the context: module initialisation and dropout use no other."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, use))
        yield


def some_rows(rows: Tensor, most: int, rng: torch.Generator) -> Tensor:
    """At most so many of the rows, drawn at random, in their order."""
    return rows if len(rows) <= most else rows[torch.randperm(len(rows), generator=rng)[:most]].sort().values
