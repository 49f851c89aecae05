"""Randomness as an argument: one seed a run, one generator for each use."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derived_seed(seed: int, use: str) -> int:
    """A seed of its own for each use, so that drawing more for one leaves the others as they were."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{use}".encode()).digest()[:7], "big")


def generator(seed: int, use: str) -> torch.Generator:
    return torch.Generator().manual_seed(derived_seed(seed, use))


@contextmanager
def seeded(seed: int, use: str) -> Iterator[None]:
    """Seed torch's global generator for a while: module initialisation and dropout know no other."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, use))
        yield
