"""A run as a value: its task, holdout, encoding, decoder and training; its id; to and from TOML."""

import hashlib
import json
import logging
import math
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import tomli_w
from pydantic import BeforeValidator, Field, ValidationError
from pydantic.dataclasses import dataclass
from torch import Tensor

import composcope.decoders
import composcope.tasks  # noqa: F401  (importing these two registers their components)
from composcope.components import CONFIG, Listed, check_keys, plain
from composcope.decoders.base import Decoder
from composcope.display import block, line, table
from composcope.encodings import Encoding
from composcope.errors import BadInput, explain
from composcope.factors import Latents
from composcope.holdouts import Certificate, Holdout, certify_training, split
from composcope.penalties import Penalty
from composcope.randomness import generator
from composcope.sampling import Draws, Sampling
from composcope.tasks.base import Task
from composcope.training import Training

if TYPE_CHECKING:
    from composcope.runs.drawing import Axes

log = logging.getLogger(__name__)
T = TypeVar("T")

# Raised by hand when the same spec would give other results; part of every run's id.
RESULTS_VERSION = 1
# Raised when the layout of a written spec changes.
SPEC_VERSION = 1
# Of factor values, over all factors of a task.
MAX_COMBINATIONS = 2**22


def _training(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    check_keys(value, Training)
    return Training(**value)


class NotComposition(UserWarning):
    """The holdout holds out whole factor values, so the run tests extrapolation."""


class LeakedImages(UserWarning):
    """Training images of absent factors, or of combinations drawn alike, show what is held out."""


@dataclass(frozen=True, config=CONFIG)
class Spec:
    """One run: task -> holdout -> encoding -> decoder, what it is trained on and how, and the seed."""

    task: Task
    holdout: Holdout
    encoding: Encoding
    decoder: Decoder
    sampling: Sampling = Draws(2000)
    training: Annotated[Training, BeforeValidator(_training)] = Training()
    penalties: Annotated[tuple[Penalty, ...], Listed] = ()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    def __post_init__(self) -> None:
        """Refuse what cannot run, before anything is trained: try every part once with the parts it depends on."""
        # The runs of a sweep share most of their parts, so what was tried once is not tried again.
        _once(_check_data, self.task, self.holdout, self.sampling)
        _once(_check_encoding, self.task, self.sampling, self.encoding)
        _once(_check_decoder, self.task, self.encoding, self.decoder)
        _once(_check_training, self.task, self.holdout, self.sampling, self.training)
        _once(_check_loss, self.decoder, self.training)
        for index, penalty in enumerate(self.penalties):
            check_part(f"penalties.{index}", partial(penalty.check, self.decoder))

    @cached_property
    def run_id(self) -> str:
        """Sixteen hex digits of the hash of the spec and of RESULTS_VERSION.

        Fields at their default are left out, so that adding a field keeps existing run ids valid.
        """
        identity = {"results": RESULTS_VERSION, "spec": _without_paths(plain(self, defaults=False))}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def certificate(self) -> Certificate:
        """What the run tests: its split, and whether its training images show what is held out."""
        # The seeds of a sweep share it: training images that show what is held out are mostly those of absent factors.
        seed = self.seed if self.sampling.random_absence else 0
        return _once(_certified, self.task, self.holdout, self.sampling, seed)

    @property
    def total_steps(self) -> int:
        """How many steps training takes."""
        if self.training.steps is not None:
            return self.training.steps
        return self.training.total_steps(self.sampling.count(self.task, self.holdout))

    def to_dict(self) -> dict[str, Any]:
        """The spec as plain data, ready for JSON or TOML."""
        return {"version": SPEC_VERSION, **plain(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The spec that the data describe; BadInput names the field that is wrong and what is allowed."""
        values = dict(data)
        version = values.pop("version", SPEC_VERSION)
        if type(version) is not int or not 1 <= version <= SPEC_VERSION:
            hint = "; upgrade composcope" if type(version) is int and version > SPEC_VERSION else ""
            raise BadInput(f"version = {version!r}: this composcope reads specs of version 1 to {SPEC_VERSION}{hint}")
        try:
            check_keys(values, cls)
            return cls(**values)
        except ValidationError as error:
            raise BadInput(explain(error)) from None
        except ValueError as error:
            raise BadInput(str(error)) from None
        except RecursionError:
            raise BadInput("the spec is nested too deeply") from None

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The seen and the held-out combinations of the first two factors; returns the matplotlib axes."""
        from composcope.runs.drawing import draw_split

        parts = split(self.task, self.holdout)
        return draw_split(self.task.factors, parts.latents, parts.mask, ax)

    def _repr_html_(self) -> str:
        """The parts of the spec, and what its split proves."""
        rows = [(name, repr(getattr(self, name))) for name in self.__dataclass_fields__ if getattr(self, name) != ()]
        certificate = line(f"split: {self.certificate}")
        return block(line(f"Spec {self.run_id}", strong=True), table(["", ""], rows), certificate)

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """The spec in a TOML file."""
        return cls.from_dict(read_toml(path))


@lru_cache(maxsize=1024)
def _remembered(function: Callable[..., Any], *parts: Any) -> Any:
    return function(*parts)


def _once(function: Callable[..., T], *parts: Any) -> T:
    """Call a function of parts unless it was called with the same parts; what raises is never remembered."""
    try:
        result: T = _remembered(function, *parts)
    except TypeError:  # a user's own component may hold what cannot be hashed
        result = function(*parts)
    return result


def _certified(task: Task, holdout: Holdout, sampling: Sampling, seed: int) -> Certificate:
    parts = split(task, holdout)
    try:
        return certify_training(task, parts, training_latents(task, holdout, sampling, seed))
    except Exception as error:  # the run will fail in the same way, and its failure is recorded with it
        log.debug("training images were not compared with held-out ones: %s", error)
        return parts.certificate


def training_latents(task: Task, holdout: Holdout, sampling: Sampling, seed: int) -> Latents:
    """What a run of this seed is trained on."""
    return sampling.sample(task, holdout, generator(seed, "sampling"))


def _check_data(task: Task, holdout: Holdout, sampling: Sampling) -> None:
    check_part("task", task.to_dict)
    check_part("task", lambda: _check_grid(task))
    check_part("holdout", lambda: split(task, holdout))
    check_part("sampling", lambda: sampling.check(task, holdout))
    check_part("sampling", lambda: _check_finite(task.render(sampling.example_latents(task))))


def _check_encoding(task: Task, sampling: Sampling, encoding: Encoding) -> None:
    check_part("encoding", lambda: encoding.check(task.factors))
    check_part("encoding", lambda: encoding.code_sizes(task.factors))
    check_part("encoding", lambda: encoding.encode(sampling.example_latents(task), task.factors))


def _check_decoder(task: Task, encoding: Encoding, decoder: Decoder) -> None:
    check_part("decoder", lambda: decoder.check(encoding.code_sizes(task.factors), task.image_shape))
    polarity = "dark" if task.dark else "bright"
    if decoder.polarity not in (None, polarity):
        raise ValueError(
            f'decoder: polarity = "{decoder.polarity}", and the task draws {polarity} objects;'
            f' use polarity = "{polarity}"'
        )


def _check_loss(decoder: Decoder, training: Training) -> None:
    if decoder.has_own_loss and training.l1:
        raise ValueError(f"training: l1 = {training.l1:g} is not used by {decoder.kind}, which has its own loss; use 0")


def _check_training(task: Task, holdout: Holdout, sampling: Sampling, training: Training) -> None:
    check_part("training", lambda: training.check(sampling.count(task, holdout)))


def read_toml(path: str | Path) -> dict[str, Any]:
    """The file's tables, or BadInput with the reason, and the line of a syntax error."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode())
    except FileNotFoundError:
        hint = "" if Path(path).is_absolute() else f" in {str(Path.cwd())!r}"
        raise BadInput(
            f"file not found: {str(path)!r}{hint}; `composcope init spec.toml` writes one to start from"
        ) from None
    except IsADirectoryError:
        raise BadInput(f"{str(path)!r} is a folder; a TOML file is needed") from None
    except UnicodeDecodeError:
        raise BadInput(
            f"{str(path)!r} is not a text file; a TOML file is needed (see examples/bump_cnn.toml)"
        ) from None
    except RecursionError:
        raise BadInput(f"{str(path)!r} is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{str(path)!r} is not valid TOML: {error}") from None
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror}") from None


def warn_unless_composition(spec: Spec) -> None:
    """Warn if the run does not test composition: it extrapolates, or it is trained on what is held out."""
    certificate = spec.certificate
    if certificate.leaks:
        advice = "hold out other combinations, or draw absent factors in another way"
        warnings.warn(f"sampling: {certificate.leaks}; {advice}", LeakedImages, stacklevel=2)
    if certificate.missing or not (certificate.disjoint and certificate.covers):
        advice = "to test composition, hold out combinations only (square, corner, box)"
        warnings.warn(f"holdout: {replace(certificate, leaks=None)}; {advice}", NotComposition, stacklevel=2)


def warn_of_splits(specs: Iterable[Spec]) -> None:
    """The same for many runs, once for each of their splits."""
    for spec in {(spec.task, spec.holdout, spec.sampling): spec for spec in specs}.values():
        warn_unless_composition(spec)


def _check_grid(task: Task) -> None:
    """Before the grid is made: a few numbers in a spec may describe more combinations than there is memory."""
    count = math.prod(factor.size for factor in task.factors)
    if type(task).grid is Task.grid and count > MAX_COMBINATIONS:
        raise ValueError(f"{count} combinations of its factors' values; {MAX_COMBINATIONS} are allowed")


def check_part(field: str, check: Callable[[], T]) -> T:
    """Run a check; the message of what it raises begins with the field's name."""
    try:
        return check()
    except ValidationError:
        raise
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _check_finite(images: Tensor) -> None:
    if not images.isfinite().all():
        raise ValueError("the task draws pixels that are not finite; are its settings extreme?")


def _without_paths(data: Any) -> Any:
    """The data without paths of files that have a checksum: a file is identified by its contents, not its path."""
    if isinstance(data, dict):
        return {key: _without_paths(value) for key, value in data.items() if not (key == "file" and "sha256" in data)}
    return [_without_paths(value) for value in data] if isinstance(data, list) else data
