"""One seed per run, one generator per use."""

import torch

from composcope.randomness import derived_seed, generator, seeded


def test_each_use_and_seed_has_a_different_derived_seed():
    seeds = {derived_seed(seed, use) for seed in range(50) for use in ("sampling", "batches", "training")}
    assert len(seeds) == 150
    assert derived_seed(0, "sampling") == 9351004372738132


def test_generators_are_reproducible():
    first, second = (torch.rand(5, generator=generator(3, "sampling")) for _ in range(2))
    assert torch.equal(first, second)


def test_seeded_restores_the_global_state():
    before = torch.get_rng_state()
    with seeded(0, "training"):
        inside = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(0, "training"):
        assert torch.equal(torch.rand(3), inside)
