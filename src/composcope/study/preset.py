"""How large a study is run: a name, what its runs can show, and optionally seeds for every experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from composcope.errors import BadInput

AUTHORS_SETTING = "authors' setting"
"""The label of runs at the setting that the claims are about; only such runs can contradict a claim."""

MOST_SEEDS = 1000


@dataclass(frozen=True)
class Preset:
    """One size of a study. Each experiment keeps its own sizes for it, beside its plan, under the preset's name.

    - `about`: one line for listings.
    - `label`: what its runs can show, for example "16x16" or `AUTHORS_SETTING`; `labels`: the same for single claims
      whose runs have a size of their own, by the claim's number.
    - `seeds`: used by every experiment instead of its own seeds; `first_seed`: where `with_seeds` starts counting.
    """

    name: str
    about: str
    label: str
    labels: Mapping[int, str] = field(default_factory=dict, hash=False)
    seeds: tuple[int, ...] | None = None
    first_seed: int = 0

    def label_of(self, claim: int) -> str:
        """What the runs of this claim can show."""
        return self.labels.get(claim, self.label)

    def seeds_or(self, own: tuple[int, ...]) -> tuple[int, ...]:
        """The seeds of an experiment that has seeds of its own."""
        return own if self.seeds is None else self.seeds

    def with_seeds(self, seeds: int | range) -> Self:
        """The same preset with this many seeds, or with these, in every experiment."""
        chosen = range(self.first_seed, self.first_seed + seeds) if isinstance(seeds, int) else seeds
        return replace(self, seeds=tuple(chosen))

    def seeds_text(self) -> str:
        """The seeds as `--seeds` takes them; empty if every experiment uses its own."""
        if not self.seeds:
            return ""
        first, last = self.seeds[0], self.seeds[-1]
        return str(len(self.seeds)) if first == self.first_seed else f"{first}-{last}"


def read_seeds(text: str) -> int | range:
    """How many seeds, or which, as typed after `--seeds`.

    >>> read_seeds("5"), read_seeds("15-19")
    (5, range(15, 20))
    """
    first, dash, last = text.partition("-")
    if not all(word.isascii() and word.isdigit() for word in ([first, last] if dash else [first])):
        raise BadInput(f"--seeds {text!r}: write how many seeds, as in 5, or the first and the last, as in 15-19")
    seeds = range(int(first), int(last) + 1) if dash else int(first)
    count = len(seeds) if isinstance(seeds, range) else seeds
    if not 1 <= count <= MOST_SEEDS:
        raise BadInput(f"--seeds {text!r}: that is {count} seeds; use 1 to {MOST_SEEDS}")
    return seeds
