"""Every layer's output over many codes, and its derivative along each factor, in bounded memory."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import jvp, vmap

from composcope import fastconv
from composcope.activations.derivatives import differentiating, metrics_of
from composcope.activations.recording import Pick, evaluating, first_line, picked, record
from composcope.errors import BadInput

Codes = Float[Tensor, "n code"]
Finish = Callable[[int, Tensor], Tensor]
# Activations of one chunk of codes: small enough for a processor's cache and memory, large enough to be efficient.
CHUNK_BYTES = 24_000_000
# Derivatives are compared with differences over a thousandth of the code's length: in single precision smaller steps
# drown in rounding. Curvature and kinks (ReLU) make them differ by a per cent or so, a detached part by much more.
DIFFERENCE = 1e-3
DISAGREEMENT = 0.05
ROUNDING = 4  # of an image's difference, in units of single precision; about 2 for a CNN
# A block that is used a few times has as many layers; one that is called more often is the step of a sampler.
MAX_CALLS = 4


@dataclass(frozen=True)
class Layer:
    """A layer's name, the class that makes it, and the shape of its output for one code."""

    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def features(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Part:
    """Some of a layer's features over all codes: their numbers, increasing; their values; whether no others follow."""

    layer: Layer
    units: Int[Tensor, "features"]
    values: Float[Tensor, "n features"]
    last: bool


class Subject:
    """A module under study: how it is called, where it lives and which layers it has.

    - `pick`: which entry of a tuple or dict output is the image; `layers`: names to keep, all by default.
    - `device`: where to run a copy of the module; by default the module itself, where it is.
    - `columns`: what the columns of the codes are, for the message that they do not fit.
    - `repeated`: how often each layer is called of which only the last call counts. `random`: whether two calls differ.
    """

    def __init__(
        self,
        module: nn.Module,
        codes: Codes,
        pick: Pick = None,
        layers: Sequence[str] | None = None,
        device: str | torch.device | None = None,
        columns: str = "",
    ) -> None:
        if not isinstance(module, nn.Module):
            raise BadInput(f"a torch.nn.Module is needed; got {type(module).__name__}")
        self.columns = columns
        self.repeated: dict[str, int] = {}
        self.random = False
        self.module, self.pick = module if device is None else _moved(module, device), pick
        self.device, self.dtype = home(self.module, device)
        self.features = 1
        with evaluating(self.module, self.device):
            available, self.skipped = self._layers(codes)
        self.features = sum(layer.features for layer in available.values())
        unknown = [name for name in layers or () if name not in available]
        if unknown:
            raise BadInput(f"layers: there is no {unknown[0]!r}; there are {', '.join(available)}")
        self.layers = {name: layer for name, layer in available.items() if layers is None or name in layers}

    def images(self, codes: Codes) -> Float[Tensor, "n ..."]:
        """The module's images of all codes. Of a module that is not random, each different code is drawn once."""
        if not self.random:  # with a factor left out most codes are alike
            different, number = codes.unique(dim=0, return_inverse=True)
            if len(different) < len(codes):
                return self.draws(different, 1)[0][number]
        return self.draws(codes, 1)[0]

    def draws(self, codes: Codes, count: int, finish: Finish = lambda start, images: images) -> list[Tensor]:
        """The images of all codes `count` times, one after another: a module that is random draws other ones.

        - `finish`: given the first row and the images of some codes at a time; what it returns is kept in their place.
        """
        with evaluating(self.module, self.device):
            return [self._drawn(codes, finish) for _ in range(count)]

    def _drawn(self, codes: Codes, finish: Finish) -> Float[Tensor, "n ..."]:
        kept, start = torch.empty(0), 0
        for part in codes.split(self._chunk(1)):
            # A clone, since the module may write into what it is given.
            images = finish(start, picked(self.module(self._sent(part).clone()), self.pick).detach().float().cpu())
            if not start:
                kept = torch.empty(len(codes), *images.shape[1:])
            kept[start : start + len(part)] = images
            start += len(part)
        return kept

    def parts(
        self, codes: Codes, memory: int, units: Mapping[str, Int[Tensor, "features"]] | None = None
    ) -> Iterator[Part]:
        """Layers' outputs over all codes, a layer's features in as few parts as fit into `memory` bytes.

        - `units`: which features of which layers, in increasing order; by default all of all layers.

        As many parts as fit together are made in one pass over the codes; each is released when the next is requested.
        """
        wanted = {name: torch.arange(layer.features) for name, layer in self.layers.items()} if units is None else units
        for group in self._groups(wanted, len(codes), memory):
            with evaluating(self.module, self.device):
                self._fill(group, codes)
            while group:
                yield group.pop(0)

    def _groups(self, wanted: Mapping[str, Tensor], points: int, memory: int) -> Iterator[list[Part]]:
        """Parts to be filled, in groups of at most `memory` bytes of float32."""
        width = max(1, memory // (4 * points))
        group: list[Part] = []
        free = width
        for name, units in wanted.items():
            remaining = len(units)
            for some in units.split(width):
                remaining -= len(some)
                if len(some) > free:
                    yield group
                    group, free = [], width
                group.append(Part(self.layers[name], some, torch.empty(points, len(some)), remaining == 0))
                free -= len(some)
        if group:
            yield group

    def _fill(self, group: Sequence[Part], codes: Codes) -> None:
        done = 0
        for chunk in codes.split(self._chunk(1)):
            values, _ = record(self.module, self._sent(chunk), self.pick, last=self.repeated)
            for part in group:
                output = values[part.layer.name].detach().flatten(1)
                first, last = int(part.units[0]), int(part.units[-1]) + 1
                adjacent = last - first == len(part.units)
                chosen = output[:, first:last] if adjacent else output[:, part.units.to(output.device)]
                part.values[done : done + len(chunk)] = chosen
            done += len(chunk)

    def metrics(
        self, codes: Codes, tangents: Float[Tensor, "axes n code"], on_chunk: Callable[[], None] = lambda: None
    ) -> dict[str, Float[Tensor, "n axes axes"]]:
        """g = J^T J of every layer at every code, J exact by forward-mode differentiation: all layers in one pass.

        The value is computed once for all axes, and only the metric is kept of a chunk's derivatives. Raises whatever
        the module raises if it cannot be differentiated so; `differentiates` asks beforehand.
        """
        kept: dict[str, list[Tensor]] = {name: [] for name in self.layers}
        chunk = self._chunk(1 + len(tangents))
        with differentiating(self.module, self.device):
            together = self._vectorises(codes, tangents)
            for some, along in zip(codes.split(chunk), tangents.split(chunk, 1), strict=True):
                for name, slopes in self._slopes(some, along, together).items():
                    kept[name].append(metrics_of(slopes).cpu())
                on_chunk()
        return {name: torch.cat(parts) for name, parts in kept.items()}

    def chunks(self, points: int, axes: int) -> int:
        """How many times `metrics` calls `on_chunk`."""
        return -(-points // self._chunk(1 + axes))

    def differentiates(self, codes: Codes, tangents: Float[Tensor, "axes n code"]) -> str | None:
        """None if the module has forward-mode derivatives that agree with small differences, else why not."""
        rows = torch.linspace(0, len(codes) - 1, min(len(codes), 8)).long()
        some, along = codes[rows], tangents[:1, rows]
        try:
            with differentiating(self.module, self.device):
                image = lambda code: picked(self.module(code.clone()), self.pick)  # noqa: E731
                slope = jvp(image, (self._sent(some),), (self._sent(along[0]),))[1].detach().float().cpu()
        except Exception as error:
            return f"{type(error).__name__}: {first_line(error)}"
        # A part of the signal that is detached, or a step function, has no derivative and yet changes the image.
        reach = DIFFERENCE * some.norm(dim=1) / along[0].norm(dim=1).clamp(min=1e-12)
        step = reach.clamp(min=DIFFERENCE)[:, None] * along[0]
        with fastconv.using("torch"):  # the kernels round more
            ends = [self.images(some + step * side).flatten(1) for side in (1, -1)]
        moved = (ends[0] - ends[1]) / 2
        expected = slope.flatten(1) * (step.norm(dim=1) / along[0].norm(dim=1).clamp(min=1e-12))[:, None]
        larger = torch.maximum(moved.norm(dim=1), expected.norm(dim=1)).clamp(min=1e-12)
        # An untrained network hardly changes its image: what is left of the difference is then mostly rounding.
        rounding = ROUNDING * torch.finfo(torch.float32).eps * ends[0].norm(dim=1)
        apart = ((moved - expected).norm(dim=1) - rounding).clamp(min=0) / larger
        if apart.median() > DISAGREEMENT:
            return f"it disagrees with small differences by {apart.median():.0%}; is a part of the signal detached?"
        return None

    def _vectorises(self, codes: Codes, tangents: Tensor) -> bool:
        """Whether the derivatives along all axes can share one pass."""
        try:
            self._slopes(codes[:1], tangents[:, :1], True)
        except Exception:
            return False
        return True

    def _slopes(self, codes: Codes, tangents: Tensor, together: bool) -> dict[str, Float[Tensor, "axes n ..."]]:
        """Every layer's derivative along every axis."""
        codes, tangents = self._sent(codes), self._sent(tangents)

        def outputs(codes: Tensor) -> dict[str, Tensor]:
            values, _ = record(self.module, codes, self.pick, copies=False, last=self.repeated)
            return {name: values[name] for name in self.layers}

        def slope(tangent: Tensor) -> dict[str, Tensor]:
            slopes: dict[str, Tensor] = jvp(outputs, (codes,), (tangent,))[1]
            return slopes

        if together:
            stacked: dict[str, Tensor] = vmap(slope, randomness="same")(tangents)
            return stacked
        each = [slope(tangent) for tangent in tangents]
        return {name: torch.stack([slopes[name] for slopes in each]) for name in self.layers}

    def _layers(self, codes: Codes) -> tuple[dict[str, Layer], dict[str, str]]:
        """The layers by name, and why some outputs are not layers.

        Two calls with different numbers of codes show which axis runs over the codes, if any does.
        """
        few, more = (codes[torch.arange(n) % len(codes)] for n in (2, 3))
        try:
            values, kinds = record(self.module, self._sent(few), self.pick)
            self.repeated = _often_called(values)
            if self.repeated:
                values, kinds = record(self.module, self._sent(few), self.pick, last=self.repeated)
            others, _ = record(self.module, self._sent(more), self.pick, last=self.repeated)
        except BadInput:
            raise
        except Exception as error:
            shape, columns = tuple(few.shape), f" ({self.columns})" if self.columns else ""
            raise BadInput(f"the module does not take codes of shape {shape}{columns}: {first_line(error)}") from error
        layers, skipped = {}, {}
        for name, value in values.items():
            shape, again = tuple(value.shape), tuple(others[name].shape) if name in others else None
            if again == (3, *shape[1:]) and shape[0] == 2:
                layers[name] = Layer(name, kinds[name], shape[1:])
            else:
                skipped[name] = f"its output has shapes {shape} and {again} for 2 and 3 codes"
        return layers, skipped

    def _sent(self, values: Tensor) -> Tensor:
        return values.to(self.device, self.dtype)

    def _chunk(self, copies: int) -> int:
        """Codes at a time, so that `copies` of all layers' outputs for them stay small."""
        return max(1, min(256, CHUNK_BYTES // (4 * copies * self.features)))


def _often_called(names: Iterable[str]) -> dict[str, int]:
    """The layers that are called more than a few times, and how often: `name#7` is the seventh call."""
    calls = [name.rpartition("#") for name in names if "#" in name]
    most = {name: max(int(number) for other, _, number in calls if other == name) for name, _, _ in calls}
    return {name: number for name, number in most.items() if number > MAX_CALLS}


def home(module: nn.Module, device: str | torch.device | None = None) -> tuple[torch.device, torch.dtype]:
    """The device and the floating-point type of a module's parameters, or of its buffers if it has none."""
    tensors = [*module.parameters(), *module.buffers()]
    numbers = [tensor for tensor in tensors if tensor.is_floating_point()]
    own = tensors[0].device if tensors else torch.device("cpu")
    return torch.device(device) if device is not None else own, numbers[0].dtype if numbers else torch.float32


def _moved(module: nn.Module, device: str | torch.device) -> nn.Module:
    try:
        return copy.deepcopy(module).to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"device = {str(device)!r} cannot be used here: {first_line(error)}") from None
