"""Holdouts of many factors, and how many factors must be composed at once."""

import itertools
import time

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from composcope.factors import latent_grid
from composcope.holdouts import certify, composed_at_once
from composcope.holdouts.cells import _random

FACTORS = (
    cs.Factor("x", range(4)),
    cs.Factor("shape", ("square", "disc", "heart")),
    cs.Factor("angle", range(0, 360, 60), "circular", 360),
)
GRID = latent_grid(FACTORS)
SPRITES = cs.SpriteTask(16, x=range(4, 12), y=range(4, 12), shapes=("square", "disc", "heart"), scales=(3,))


def rows(holdout, factors=FACTORS, grid=GRID):
    holdout.check(factors)
    return {tuple(row) for row in grid[holdout.contains(grid, factors)].tolist()}


def expected(rule):
    return {tuple(row) for row in GRID.tolist() if rule(*row)}


class TestBlocks:
    def test_values_may_be_numbers_names_and_ranges(self):
        holdout = cs.Orthotope([{"x": [0, 3], "shape": ["disc", "heart"], "angle": "60..180"}])
        assert rows(holdout) == expected(lambda x, s, a: x in (0, 3) and s in (1, 2) and 60 <= a <= 180)

    def test_blocks_are_joined_and_need_not_name_the_same_factors(self):
        holdout = cs.Orthotope([{"x": "1..2"}, {"shape": "heart", "angle": 0}])
        assert rows(holdout) == expected(lambda x, s, a: x in (1, 2) or (s == 2 and a == 0))

    def test_a_range_goes_round_a_circular_factor(self):
        assert rows(cs.Orthotope([{"angle": "300..60"}])) == expected(lambda x, s, a: a >= 300 or a <= 60)
        with pytest.raises(ValueError, match=r"lo = 3 is above hi = 1; only a circular factor goes round"):
            rows(cs.Orthotope([{"x": "3..1"}]))

    def test_one_block_of_ranges_is_a_box(self):
        block, box = cs.Orthotope([{"x": "1..2", "shape": "0..1"}]), cs.Box({"x": (1, 2), "shape": (0, 1)})
        assert rows(block) == rows(box)

    def test_a_python_range_is_its_numbers(self):
        assert cs.Orthotope([{"x": range(1, 3)}]) == cs.Orthotope([{"x": [1, 2]}])

    def test_real_numbers_between_the_values_are_in_ranges_only(self):
        latents = torch.tensor([[1.5], [1.0]])
        assert cs.Orthotope([{"x": "1..2"}]).contains(latents).tolist() == [True, True]
        assert cs.Orthotope([{"x": [1, 2]}]).contains(latents).tolist() == [False, True]

    @pytest.mark.parametrize(
        ("block", "complaint"),
        [
            ({"shape": "hart"}, r"shape = 'hart' is not a value, did you mean 'heart'\?; the values are square, disc"),
            ({"x": 9}, r"x = 9\.0 chooses none of the factor's values; .* a range such as '0..3'"),
            ({"x": "5..9"}, "chooses none"),
            ({"x": "middle"}, "is not a value"),
            ({"z": 1}, "no factor is named 'z'"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("kind", ["orthotope", "pairs"])
    def test_values_that_do_not_exist_are_refused(self, kind, block, complaint):
        holdout = cs.Orthotope([block]) if kind == "orthotope" else cs.Pairs({**block, "angle": 60})
        with pytest.raises(ValueError, match=complaint):
            holdout.check(FACTORS)

    @pytest.mark.parametrize("blocks", [[], [{}], [{"x": []}], [{"x": True}], {"x": 1}], ids=str)
    def test_empty_and_malformed_blocks_are_refused(self, blocks):
        with pytest.raises(ValidationError, match="blocks"):
            cs.Orthotope(blocks=blocks)

    def test_names_need_the_factors(self):
        with pytest.raises(ValueError, match=r"is a name: call contains\(latents, task.factors\)"):
            cs.Orthotope([{"shape": "heart"}]).contains(torch.zeros(1, 1))

    def test_equal_blocks_have_equal_hashes_whatever_the_order_of_names(self):
        for kind, wrap in ((cs.Orthotope, lambda block: [block]), (cs.Pairs, lambda block: block)):
            first, second = kind(wrap({"x": 1, "shape": "disc"})), kind(wrap({"shape": ["disc"], "x": [1.0]}))
            assert first == second
            assert hash(first) == hash(second)


class TestPairs:
    def test_two_names_are_one_block(self):
        assert rows(cs.Pairs({"x": "1..2", "shape": "heart"})) == rows(cs.Orthotope([{"x": "1..2", "shape": "heart"}]))

    def test_with_more_names_each_two_are_held_out_together(self):
        block = {"x": "1..2", "shape": "heart", "angle": "0..120"}
        pairs = [cs.Orthotope([{name: block[name] for name in two}]) for two in itertools.combinations(block, 2)]
        assert rows(cs.Pairs(block)) == set.union(*map(rows, pairs))

    def test_two_factors_must_be_composed_whatever_the_others(self):
        certificate = cs.split(SPRITES, cs.Pairs({"x": "6..9", "y": "6..9"})).certificate
        assert (certificate.difficulty.least, certificate.difficulty.most) == (2, 2)
        assert str(certificate).endswith("every factor value is seen; 2 of 3 factors must be composed at once")

    def test_one_name_is_refused(self):
        with pytest.raises(ValidationError, match="block"):
            cs.Pairs(block={"x": 1})


class TestCells:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize(("share", "seen"), [(0.1, "values"), (0.7, "values"), (0.3, "pairs")])
    def test_the_share_is_held_out_and_the_rest_is_still_seen(self, share, seen, seed):
        parts = cs.split(SPRITES, cs.Cells(share, seed, seen))
        assert len(parts.heldout) == round(share * 192)
        assert parts.certificate.composition
        assert parts.certificate.difficulty.least >= (3 if seen == "pairs" else 2)

    def test_the_choice_is_the_same_everywhere(self):
        """Frozen: these must not change with the platform or a version of NumPy."""
        assert _random(2, 0).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]  # SplitMix64 from 0, as published
        chosen = cs.Cells(0.1, seed=1).contains(GRID, FACTORS).nonzero()[:, 0].tolist()
        assert chosen == [20, 21, 25, 28, 61, 66, 67]

    def test_another_seed_chooses_others(self):
        assert rows(cs.Cells(0.3, seed=0)) != rows(cs.Cells(0.3, seed=1))

    def test_cells_are_chosen_evenly(self):
        counts = sum(cs.Cells(0.3, seed=seed).contains(GRID, FACTORS).double() for seed in range(300))
        assert counts.mean() == pytest.approx(0.3 * 300, rel=0.02)
        assert counts.min() > 50
        assert counts.max() < 140

    def test_latents_belong_to_the_nearest_cell(self):
        holdout = cs.Cells(0.3, seed=2)
        moved = GRID + torch.tensor([0.4, 0.0, -25.0])
        assert torch.equal(holdout.contains(moved, FACTORS), holdout.contains(GRID, FACTORS))

    def test_a_share_that_would_hide_values_is_refused(self):
        with pytest.raises(ValueError, match=r"holds out 71 of 72 combinations; 1 to 6\d are possible"):
            cs.Cells(0.98).check(FACTORS)
        with pytest.raises(ValueError, match="holds out 0 of 72"):
            cs.Cells(0.001).check(FACTORS)

    def test_all_pairs_of_two_factors_are_all_combinations(self):
        with pytest.raises(ValueError, match="need at least 3 factors"):
            cs.split(cs.BumpTask(8), cs.Cells(0.1, seen="pairs"))

    def test_factors_are_needed(self):
        with pytest.raises(ValueError, match=r"task\.factors"):
            cs.Cells(0.1).contains(GRID)


def by_hand(latents, mask):
    """The definition, combination by combination."""
    seen, columns = latents[~mask].tolist(), range(latents.shape[1])
    orders = []
    for held in latents[mask].tolist():
        orders.append(
            next(
                size
                for size in range(1, len(columns) + 1)
                for some in itertools.combinations(columns, size)
                if not any(all(row[i] == held[i] for i in some) for row in seen)
            )
        )
    return orders


class TestDifficulty:
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.95])
    def test_random_splits_agree_with_the_definition(self, share):
        rng = torch.Generator().manual_seed(int(100 * share))
        for sizes in ((3, 4), (2, 3, 4), (2, 2, 3, 2)):
            latents = latent_grid([cs.Factor(str(i), range(size)) for i, size in enumerate(sizes)])
            mask = torch.rand(len(latents), generator=rng) < share
            mask[0] = False
            assert composed_at_once(latents, mask).tolist() == by_hand(latents, mask)

    def test_a_table_of_numbers_and_sorting_agree(self, monkeypatch):
        mask = cs.Cells(0.6, seed=3).contains(GRID, FACTORS)
        order = composed_at_once(GRID, mask)
        monkeypatch.setattr("composcope.holdouts.splits.MAX_IN_TABLE", 0)
        assert torch.equal(composed_at_once(GRID, mask), order)

    def test_whole_values_have_difficulty_one(self):
        certificate = cs.split(cs.BumpTask(8), cs.Cross(3, 4)).certificate
        assert (certificate.difficulty.least, certificate.difficulty.most) == (1, 1)

    def test_nothing_has_none(self):
        assert cs.split(cs.BumpTask(8), cs.Nothing()).certificate.difficulty is None

    def test_mean_is_over_held_out_combinations(self):
        task = cs.BumpTask(8, brightness=(0.5, 1.0))
        holdout = cs.Orthotope([{"x": 1, "y": 1}, {"x": 5, "y": 5, "brightness": 1}])
        difficulty = cs.split(task, holdout).certificate.difficulty
        assert (difficulty.least, difficulty.most, difficulty.mean) == (2, 3, pytest.approx(7 / 3))
        assert str(difficulty) == "2 to 3 of 3 factors must be composed at once, 2.33 on average"

    def test_many_factors_do_not_overflow(self):
        latents = torch.arange(300.0)[:, None].expand(300, 12).clone()
        mask = torch.zeros(300, dtype=torch.bool)
        mask[-1] = True
        latents[-1] = torch.tensor([0.0] * 6 + [1.0] * 6)
        assert composed_at_once(latents, mask).tolist() == [2]
        certificate = certify([cs.Factor(str(i), range(300)) for i in range(12)], latents, mask)
        assert certificate.disjoint
        assert certificate.covers


def test_a_hundred_thousand_combinations_take_about_a_second():
    factors = [cs.Factor(name, range(10)) for name in "abcde"]
    grid = latent_grid(factors)
    start = time.process_time()
    mask = cs.Cells(0.2, seen="pairs").contains(grid, factors)
    certificate = certify(factors, grid, mask)
    assert time.process_time() - start < 5  # 0.4 s on a free core
    assert certificate.composition
    assert np.count_nonzero(mask) == 20_000
