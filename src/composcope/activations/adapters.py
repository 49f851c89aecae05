"""Decoders in the form in which people have them, as modules that take one flat code.

Everything that is measured works on codes of shape (n, code). A decoder may instead take one argument per factor, a
dict, or codes of shape (n, slots, d); it may be a function or a method of a module. `Adapted` takes the flat code,
gives the decoder what it expects, and is otherwise invisible: layers keep the names that they have in the decoder.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.factors import Factor, Latents

Inputs = Literal["code", "factors", "keywords", "dict", "slots"]
Decode = nn.Module | Callable[..., Any]
Encode = Encoding | Callable[[Tensor], Any]
"""An encoding, or a function from latents to codes: a tensor, or a tuple or dict of tensors, one row per latent."""


@dataclass(frozen=True)
class Argument:
    """Some columns of the flat code as a decoder's argument: its shape for one code, and its type."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """How a flat code becomes a decoder's arguments.

    - `form`: "code" (one tensor), "factors" (one positional argument each), "keywords" or "dict".
    """

    form: Inputs
    arguments: tuple[Argument, ...]

    @property
    def plain(self) -> bool:
        """Whether the decoder takes the flat code itself."""
        return self.form == "code" and len(self.arguments[0].shape) == 1 and self.arguments[0].dtype.is_floating_point

    def call(self, decoder: Callable[..., Any], codes: Tensor) -> Any:
        """The decoder's output for flat codes."""
        parts = {
            argument.name: part.reshape(len(codes), *argument.shape).to(
                codes.dtype if argument.dtype.is_floating_point else argument.dtype
            )
            for argument, part in zip(
                self.arguments, codes.split([argument.size for argument in self.arguments], 1), strict=True
            )
        }
        if self.form == "dict":
            return decoder(parts)
        return decoder(**parts) if self.form == "keywords" else decoder(*parts.values())

    def __str__(self) -> str:
        shapes = [f"{argument.name} {('n', *argument.shape)}".replace("'", "") for argument in self.arguments]
        return {"code": "", "factors": "arguments ", "keywords": "keywords ", "dict": "a dict of ", "slots": ""}[
            self.form
        ] + ", ".join(shapes)


def encoded(
    encoding: Encode, latents: Latents, factors: Sequence[Factor], inputs: Inputs = "code"
) -> tuple[Tensor, Layout]:
    """The flat codes of the latents, (n, code), and how a decoder takes them."""
    if isinstance(encoding, Encoding):
        try:
            codes = encoding.encode(latents, factors)
        except ValueError as error:
            raise BadInput(str(error)) from None
        return codes, _layout(inputs, factors, encoding.code_sizes(factors))
    codes_of = encoding(latents.clone())
    parts, form = _parts(codes_of, factors, inputs)
    columns, arguments = [], []
    for name, part in parts.items():
        if not isinstance(part, Tensor) or part.ndim < 1 or len(part) != len(latents):
            shape = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
            raise BadInput(
                f"encoding: latents of shape {tuple(latents.shape)} need codes of shape ({len(latents)}, code), or "
                f"a tuple or dict of tensors with {len(latents)} rows each; {name} is {shape}"
            )
        flat = part.detach().float().cpu().reshape(len(part), -1)
        # A tensor of one row per latent is one number per code where there are several arguments, a column otherwise.
        shape = tuple(part.shape[1:]) if part.ndim > 1 or len(parts) > 1 else (1,)
        columns.append(flat)
        arguments.append(Argument(name, shape, part.dtype))
    return torch.cat(columns, 1), Layout(form, tuple(arguments))


def flat_encoding(encoding: Encode, layout: Layout) -> Encode:
    """The encoding with flat codes, for derivatives."""
    if isinstance(encoding, Encoding) or layout.plain:
        return encoding

    def flat(latents: Tensor) -> Tensor:
        codes = encoding(latents)
        parts = codes.values() if isinstance(codes, Mapping) else codes if isinstance(codes, tuple | list) else (codes,)
        return torch.cat([part.reshape(len(latents), -1).to(latents.dtype) for part in parts], 1)

    return flat


def _parts(codes: Any, factors: Sequence[Factor], inputs: Inputs) -> tuple[dict[str, Any], Inputs]:
    """What an encoding function returned, by name, and the form in which the decoder gets it."""
    if isinstance(codes, Mapping):
        return {str(name): part for name, part in codes.items()}, "keywords" if inputs == "keywords" else "dict"
    if isinstance(codes, tuple | list):
        names = [factor.name for factor in factors]
        if len(codes) != len(names):
            names = [f"argument {number}" for number in range(1, len(codes) + 1)]
        form: Inputs = inputs if inputs in ("keywords", "dict") else "factors"
        return dict(zip(names, codes, strict=True)), form
    return {"code": codes}, "code"


def _layout(inputs: Inputs, factors: Sequence[Factor], sizes: Sequence[int]) -> Layout:
    if inputs == "code":
        return Layout("code", (Argument("code", (sum(sizes),), torch.float32),))
    if inputs == "slots":
        if len(set(sizes)) > 1:
            each = ", ".join(f"{factor.name} {size}" for factor, size in zip(factors, sizes, strict=True))
            raise BadInput(f"inputs = 'slots': every factor's code must have the same length; they have {each}")
        return Layout("code", (Argument("code", (len(sizes), sizes[0]), torch.float32),))
    arguments = (Argument(factor.name, (size,), torch.float32) for factor, size in zip(factors, sizes, strict=True))
    return Layout(inputs, tuple(arguments))


class Adapted(nn.Module):
    """A decoder in another form, as a module of flat codes.

    - `inner`: the module whose layers are measured, None for a function that belongs to none.
    - `why_no_layers`: why only its images can be measured, empty if its layers can be too.
    """

    def __init__(self, decoder: Decode, layout: Layout) -> None:
        super().__init__()
        owner = getattr(decoder, "__self__", None)
        self.method: Callable[..., Any] | None = None
        self.inner: nn.Module | None = None
        self.why_no_layers = ""
        if isinstance(decoder, nn.Module):
            self.inner = decoder
            if isinstance(decoder, torch.jit.ScriptModule):
                self.why_no_layers = "a ScriptModule shows its images only, not its layers"
        elif isinstance(owner, nn.Module) and hasattr(decoder, "__func__"):
            # The unbound method: a copy of the module on another device must not call the original's.
            self.inner, self.method = owner, decoder.__func__
        else:
            self.method = decoder
            self.why_no_layers = "a function shows its images only, not its layers; a module, or its method, shows both"
        self.layout = layout

    def forward(self, codes: Tensor) -> Any:
        if self.method is None:
            assert self.inner is not None
            return self.layout.call(self.inner, codes)
        method, inner = self.method, self.inner
        if inner is None:
            return self.layout.call(method, codes)
        return self.layout.call(lambda *parts, **named: method(inner, *parts, **named), codes)


def adapted(decoder: Decode, layout: Layout) -> nn.Module:
    """The decoder as a module of flat codes: itself, if that is what it is."""
    if isinstance(decoder, type) or not callable(decoder):
        hint = f"; it is a class: pass an instance, {decoder.__name__}(...)" if isinstance(decoder, type) else ""
        raise BadInput(f"a torch.nn.Module or a function is needed; got {type(decoder).__name__}{hint}")
    compiled = getattr(decoder, "_orig_mod", None)  # what torch.compile wraps computes the same, layer by layer
    decoder = compiled if isinstance(compiled, nn.Module) else decoder
    if isinstance(decoder, nn.Module) and layout.plain and not isinstance(decoder, torch.jit.ScriptModule):
        return decoder
    return Adapted(decoder, layout)
