"""One seed a run, one generator for each use."""

import torch

from composcope.randomness import derived_seed, generator, seeded


def test_uses_and_seeds_have_different_numbers():
    seeds = {derived_seed(seed, use) for seed in range(50) for use in ("sampling", "batches", "training")}
    assert len(seeds) == 150
    assert derived_seed(0, "sampling") == 9351004372738132


def test_generators_repeat_themselves():
    first, second = (torch.rand(5, generator=generator(3, "sampling")) for _ in range(2))
    assert torch.equal(first, second)


def test_seeding_for_a_while_leaves_the_global_state_alone():
    before = torch.get_rng_state()
    with seeded(0, "training"):
        inside = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(0, "training"):
        assert torch.equal(torch.rand(3), inside)
