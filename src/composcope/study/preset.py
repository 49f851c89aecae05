"""How large a study is run: a name, what its runs can show, and optionally seeds for every experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

AUTHORS_SETTING = "authors' setting"
"""The label of runs at the setting that the claims are about; only such runs can contradict a claim."""


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

    def with_seeds(self, count: int) -> Self:
        """The same preset with this many seeds in every experiment."""
        return replace(self, seeds=tuple(range(self.first_seed, self.first_seed + count)))
