"""A run in a few words: its code, its decoder, its training set."""

from collections import Counter
from collections.abc import Sequence

from composcope.decoders.base import Decoder
from composcope.encodings import Encoding, PerFactor
from composcope.runs.spec import Spec
from composcope.sampling import Draws, Everything, Sampling, Stripes
from composcope.store.records import flatten

CODES = {"onehot": "one-hot"}
DECODERS = {"cnn": "CNN", "mlp": "MLP", "lowrank": "low-rank", "pixelwise": "pixel-wise"}


def title(spec: Spec) -> str:
    """The code, the decoder, the training set and the penalties.

    >>> import composcope as cs
    >>> task, hole = cs.BumpTask(16), cs.Square(4, 11)
    >>> title(cs.Spec(task, hole, cs.OneHot(), cs.CNN(), sampling=cs.Stripes(bumps=100)))
    'one-hot, CNN, stripes + 100'
    """
    parts = [_code(spec.encoding), _decoder(spec.decoder), _data(spec.sampling)]
    if spec.penalties:
        parts.append(" + ".join(penalty.kind for penalty in spec.penalties))
    return ", ".join(parts)


def titles(specs: Sequence[Spec]) -> list[str]:
    """Their titles; where several are the same, followed by the world if that differs, or else by what does."""
    plain = [title(spec) for spec in specs]
    worlds = [_world(spec) for spec in specs]
    distinct = [
        f"{name} ({world})" if _several(name, plain, worlds) else name
        for name, world in zip(plain, worlds, strict=True)
    ]
    often = Counter(distinct)
    named = []
    for spec, name in zip(specs, distinct, strict=True):
        namesakes = [flatten(other.to_dict()) for other, same in zip(specs, distinct, strict=True) if same == name]
        own = flatten(spec.to_dict())
        different = [f"{key} {own[key]}" for key in own if any(other.get(key) != own[key] for other in namesakes)]
        named.append(f"{name} ({', '.join(different)})" if often[name] > 1 and different else name)
    return named


def _several(name: str, names: Sequence[str], worlds: Sequence[str]) -> bool:
    """Whether runs of this name are from different worlds."""
    return len({world for other, world in zip(names, worlds, strict=True) if other == name}) > 1


def _world(spec: Spec) -> str:
    return f"{spec.task.kind}: {', '.join(factor.name for factor in spec.task.factors)}"


def _code(encoding: Encoding) -> str:
    if isinstance(encoding, PerFactor):
        return " and ".join(f"{name} {_code(each)}" for name, each in encoding.encodings.items())
    return CODES.get(encoding.kind, encoding.kind)


def _decoder(decoder: Decoder) -> str:
    return DECODERS.get(decoder.kind, decoder.kind)


def _data(sampling: Sampling) -> str:
    if isinstance(sampling, Everything):
        return "all seen"
    if isinstance(sampling, Draws):
        return f"{sampling.n} draws"
    if not isinstance(sampling, Stripes):
        return sampling.kind
    some = f"{sampling.fraction:.0%}" if sampling.fraction is not None else f"{sampling.bumps or 0}"
    if sampling.stripes == 0:
        return f"{some} of the seen"
    stripes = "stripes" if sampling.stripes is None else f"{sampling.stripes} stripes"
    return stripes if some in ("0", "0%") else f"{stripes} + {some}"
