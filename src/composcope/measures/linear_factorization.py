"""Linear factorization: how much of a layer is a sum of single-factor parts. A functional ANOVA over the grid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from jaxtyping import Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import on_grid

Term = tuple[str, ...]


@dataclass(frozen=True)
class VarianceShares:
    """Shares of a layer's variance over the grid, by the set of factors that act together; they sum to 1."""

    by_term: dict[Term, float]
    by_order: tuple[float, ...]

    @property
    def main_effects(self) -> float:
        """The share that is a sum of functions of one factor each."""
        return self.by_order[0]


def effect_variances(
    activations: Float[Tensor, "points units"], factors: Sequence[Factor]
) -> dict[Term, Float[Tensor, "units"]]:
    """Var(f_S) of every unit for every non-empty set S of factors, f = mean + sum_S f_S with orthogonal parts.

    The mean square of E[f | factors in S] is the sum of those parts whose factors lie in S, so the parts follow by
    inclusion and exclusion.
    """
    table = on_grid(activations.flatten(1).double(), factors)
    axes = range(len(factors))
    table = table - table.mean(tuple(axes), keepdim=True)
    conditional: dict[tuple[int, ...], Tensor] = {}
    effects: dict[Term, Tensor] = {}
    for order in range(1, len(factors) + 1):
        for chosen in combinations(axes, order):
            others = [axis for axis in axes if axis not in chosen]
            mean = table.mean(others) if others else table
            explained = mean.square().mean(tuple(range(order)))
            lower = [conditional[smaller] for size in range(1, order) for smaller in combinations(chosen, size)]
            conditional[chosen] = explained - sum(lower) if lower else explained
            effects[tuple(factors[axis].name for axis in chosen)] = conditional[chosen].clamp(min=0)
    return effects


def shares_of(sums: dict[Term, float]) -> VarianceShares | None:
    """Var(f_S) over the sum of all, by term and by order: main effects, pairs, triples, ...   (paper eqs. 22-24).

    - `sums`: `effect_variances`, summed over a layer's units.

    None if nothing varies.

    >>> shares_of({("x",): 3.0, ("y",): 1.0, ("x", "y"): 0.0}).by_order
    (1.0, 0.0)
    """
    total = sum(sums.values())
    if not total > 0:
        return None
    shares = {term: value / total for term, value in sums.items()}
    orders = range(1, max(map(len, sums)) + 1)
    by_order = tuple(sum(share for term, share in shares.items() if len(term) == order) for order in orders)
    return VarianceShares(shares, by_order)


def additive_blocks(shares: VarianceShares, epsilon: float = 0.05) -> tuple[Term, ...]:
    """The finest split of the factors into blocks B with f = sum_B f_B(factors in B), up to `epsilon` of the variance.

    This is partial factorization (paper eq. 28): a linear map can bring such a layer into one part per block, each of
    which depends on its own factors alone. Of equally fine splits, the one that misses the least.

    >>> mixed = VarianceShares({("x",): 0.2, ("y",): 0.2, ("z",): 0.3, ("x", "y"): 0.3}, (0.7, 0.3))
    >>> additive_blocks(mixed)
    (('x', 'y'), ('z',))
    """
    names = tuple(dict.fromkeys(name for term in shares.by_term for name in term))

    def missed(blocks: tuple[Term, ...]) -> float:
        return sum(share for term, share in shares.by_term.items() if not any(set(term) <= set(b) for b in blocks))

    within = [(len(blocks), -missed(blocks), blocks) for blocks in _partitions(names) if missed(blocks) <= epsilon]
    return max(within, key=lambda found: found[:2])[2]


def _partitions(names: Term) -> Iterator[tuple[Term, ...]]:
    """Every way to divide the names into blocks, each in the order of the names."""
    if not names:
        yield ()
        return
    for blocks in _partitions(names[:-1]):
        yield (*blocks, names[-1:])
        for index, block in enumerate(blocks):
            yield (*blocks[:index], (*block, names[-1]), *blocks[index + 1 :])
