"""Many runs from one description: base specs, lists to vary, and what to leave out."""

import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from composcope.components import nearest
from composcope.errors import BadInput
from composcope.runs.spec import Spec, read_toml

# A typing error in a list easily makes millions; this many take about a minute to build.
MAX_COMBINATIONS = 100_000
KEYS = ("base", "vary", "zip", "skip", "most")

Table = Mapping[str, Any]


class NoSuchEntry(BadInput):
    """A setting names an entry that a list does not have."""


@dataclass(frozen=True)
class Sweep:
    """Every combination of the listed values, put into the base spec or into each of several.

    - `vary`: lists by dotted name, every combination of their values. `zip`: groups of equally long lists whose values
      go together, the first with the first and so on.
    - `skip`: combinations to leave out, those in which every name of a condition has its value, one of its values if
      it is a list, or a value within its bounds if it is a table with "min" or "max".
    - `most`: how many combinations there may be, counted before any is built.

    >>> base = {"task": {"kind": "bump", "size": 16}, "holdout": {"kind": "square", "lo": 4, "hi": 11},
    ...         "encoding": {"kind": "bump"}, "decoder": {"kind": "mlp"}}
    >>> [spec.decoder.depth for spec in Sweep(base, {"decoder.depth": [1, 2], "seed": [0, 1]}).specs()]
    [1, 1, 2, 2]
    >>> wide = Sweep(base, {"seed": [0, 1]}, zip=[{"decoder.depth": [1, 2], "decoder.width": [64, 32]}],
    ...              skip=[{"seed": 1, "decoder.depth": {"min": 2}}])
    >>> [(spec.decoder.depth, spec.decoder.width, spec.seed) for spec in wide.specs()]
    [(1, 64, 0), (2, 32, 0), (1, 64, 1)]
    """

    base: Table | Sequence[Table]
    vary: Mapping[str, Sequence[Any]]
    zip: Sequence[Mapping[str, Sequence[Any]]] = ()
    skip: Sequence[Table] = ()
    most: int = MAX_COMBINATIONS

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """A file with a table [base], which is a spec, or several [[base]], and [vary], [[zip]] and [[skip]]."""
        data = read_toml(path)
        for key in data:
            if key not in KEYS:
                raise BadInput(
                    f"unknown key {key!r}{nearest(key, KEYS)}; a sweep has [base], [vary], [[zip]], [[skip]] and most"
                )
        base: Any = data.get("base")
        vary, most = data.get("vary", {}), data.get("most", MAX_COMBINATIONS)
        bases = base if isinstance(base, list) and base else [base]
        if not all(isinstance(table, dict) for table in [*bases, vary]):
            raise BadInput("a sweep needs a table [base] with a spec in it, and a table [vary] of lists")
        if type(most) is not int or most < 1:
            raise BadInput(f"most = {most!r}: needs a whole number of combinations, at least 1")
        groups, conditions = (_tables(key, data.get(key, [])) for key in ("zip", "skip"))
        for where, lists in [("vary", vary), *(("zip", group) for group in groups)]:
            for name, values in lists.items():
                if not isinstance(values, list) or not values:
                    raise BadInput(f"{where}.{name} = {values!r}: needs a list of values")
        return cls(base, vary, groups, conditions, most)

    @property
    def count(self) -> int:
        """How many combinations there are, those that are left out included; a zipped group must be equally long."""
        for group in self.zip:
            lengths = {name: len(values) for name, values in group.items()}
            if len(set(lengths.values())) > 1:
                each = ", ".join(f"{name} has {length}" for name, length in lengths.items())
                raise BadInput(f"zip: lists of a group need the same length: {each}")
        lists = [len(values) for values in self.vary.values()]
        return len(self._bases) * math.prod(lists) * math.prod(len(next(iter(group.values()))) for group in self.zip)

    def specs(self, only: Sequence[str] = ()) -> list[Spec]:
        """The specs in order, the first list varying slowest; combinations that give the same run appear once.

        - `only`: settings such as "decoder.depth=4"; combinations without them are not built.
        """
        if self.count > self.most:
            raise BadInput(
                f"the sweep has {self.count:,} combinations, more than {self.most:,}: shorten a list,"
                f" or allow more with `most = {self.count}` at the top of the file"
            )
        required = [{name: value} for name, value in map(parse_setting, only)]
        self._check_names([*self.skip, *required])
        by_id = {}
        for data in self._combinations():
            skipped = any(_matches(data, condition) for condition in self.skip)
            if not skipped and all(_matches(data, condition) for condition in required):
                spec = Spec.from_dict(data)
                by_id[spec.run_id] = spec
        return list(by_id.values())

    @property
    def varied(self) -> list[str]:
        """The names of the lists."""
        return [*self.vary, *(name for group in self.zip for name in group)]

    @property
    def _bases(self) -> Sequence[Table]:
        return [self.base] if isinstance(self.base, Mapping) else self.base

    def _combinations(self) -> Iterator[Table]:
        """Every combination as plain data."""
        groups = [*({name: values} for name, values in self.vary.items()), *self.zip]
        choices = [
            [tuple(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)] for group in groups
        ]
        for base in self._bases:
            for chosen in itertools.product(*choices):
                data: Table = base
                for name, value in itertools.chain.from_iterable(chosen):
                    data = with_value(data, name, value)
                yield data

    def _check_names(self, conditions: Sequence[Table]) -> None:
        """A condition on a name that nothing sets is a typing error."""
        for name in {name for condition in conditions for name in condition}:
            if not any(_value(data, name) is not None for data in [*self._bases, *self._examples()]):
                raise BadInput(f"{name!r} is set by no base and no list{nearest(name, self.varied)}")

    def _examples(self) -> Iterator[Table]:
        for lists in [self.vary, *self.zip]:
            for name, values in lists.items():
                for value in values:
                    yield with_value({}, name, value)


def _tables(key: str, value: Any) -> list[Table]:
    tables = [value] if isinstance(value, dict) else value
    if not isinstance(tables, list) or not all(isinstance(table, dict) and table for table in tables):
        raise BadInput(f"{key} = {value!r}: write tables [[{key}]] of dotted names")
    return tables


def _value(data: Any, name: str) -> Any:
    """What nested tables have under a dotted name; None if nothing."""
    for part in name.split("."):
        data = data.get(part) if isinstance(data, Mapping) else None
    return data


def _matches(data: Table, condition: Table) -> bool:
    return all(_fits(_value(data, name), allowed) for name, allowed in condition.items())


def _fits(value: Any, allowed: Any) -> bool:
    if isinstance(allowed, Mapping) and allowed and set(allowed) <= {"min", "max"}:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return bool(allowed.get("min", -math.inf) <= value <= allowed.get("max", math.inf))
    return value in allowed if isinstance(allowed, list) else value == allowed


def with_value(data: Mapping[str, Any], name: str, value: Any, inside: str = "") -> dict[str, Any]:
    """A copy of nested tables with one dotted name set; None removes the name.

    >>> with_value({"decoder": {"kind": "cnn"}}, "decoder.depth", 6)
    {'decoder': {'kind': 'cnn', 'depth': 6}}
    """
    head, _, rest = name.partition(".")
    changed = dict(data)
    if rest:
        inner = changed.get(head, {})
        if isinstance(inner, list):
            changed[head] = _with_value_of_kind(inner, rest, value, f"{inside}{head}.")
            return changed
        if not isinstance(inner, Mapping):
            raise BadInput(f"{inside}{name}: {inside}{head} is {inner!r}, which has no fields to set")
        changed[head] = with_value(inner, rest, value, f"{inside}{head}.")
    elif value is None:
        changed.pop(head, None)
    else:
        changed[head] = value
    return changed


def _with_value_of_kind(entries: list[Any], name: str, value: Any, inside: str) -> list[Any]:
    """The list with a field set in its entries of a kind: `variance.weight` in those whose kind is variance."""
    kind, _, rest = name.partition(".")
    kinds = [entry.get("kind") if isinstance(entry, Mapping) else None for entry in entries]
    if kind not in kinds or not rest:
        raise NoSuchEntry(f"{inside}{name}: there is no {kind!r} in {inside.rstrip('.')}, which has {kinds}")
    return [
        with_value(entry, rest, value, f"{inside}{kind}.") if own == kind else entry
        for entry, own in zip(entries, kinds, strict=True)
    ]


def with_settings(data: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables with `name=value` settings applied; values are read as TOML, or else as plain text.

    >>> with_settings({"decoder": {"kind": "cnn"}}, ["decoder.depth=6", "decoder.kind=mlp"])
    {'decoder': {'kind': 'mlp', 'depth': 6}}
    """
    changed = dict(data)
    for setting in settings:
        name, value = parse_setting(setting, "--set")
        changed = with_value(changed, name, value)
    return changed


def parse_setting(setting: str, option: str = "--only") -> tuple[str, Any]:
    """The name and the value of "name=value"; None for no value."""
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise BadInput(f"{option} {setting!r}: write NAME=VALUE, as in {option} decoder.depth=6")
    try:
        value = tomllib.loads(f"value = {text}")["value"] if text else None
    except tomllib.TOMLDecodeError:
        value = text
    return name.strip(), value
