"""Components: small frozen values with a registered name, convertible to plain data and back.

A role (Task, Holdout, Encoding, Decoder, Sampling, Penalty) is an abstract class that derives from `Component`. A
component derives from a role and is registered by `@register("name")`; as data it is a dict with its name as "kind".
"""

from __future__ import annotations

import difflib
from abc import ABC
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from dataclasses import dataclass as plain_dataclass
from functools import cache
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BeforeValidator, ConfigDict, GetCoreSchemaHandler, TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticUndefined, core_schema

C = TypeVar("C", bound="Component")

# The roles in the order of a spec.
ROLES = ("task", "holdout", "encoding", "decoder", "sampling", "penalty")
# Strict, so that a typing error such as depth = "4" or depth = true is refused instead of converted.
CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False, strict=True)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _as_dict(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("must be a table of names and values")
    return dict(value)


# JSON and TOML have only lists; a component's sequences are tuples, so that it can be hashed.
Listed = BeforeValidator(_as_tuple)
# A copy, so that changing the caller's dict does not change the component.
Named = BeforeValidator(_as_dict)


class Component(ABC):
    """A value that can be part of a spec; roles derive from it, components from roles."""

    role: ClassVar[type[Component]]
    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Component]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Component in cls.__bases__:
            cls.role, cls.kinds = cls, {}

    def to_dict(self, defaults: bool = True) -> dict[str, Any]:
        """The component as plain data for JSON or TOML, with or without the fields that have their default value.

        >>> import composcope as cs
        >>> cs.Square(6, 22).to_dict()
        {'kind': 'square', 'lo': 6.0, 'hi': 22.0}
        """
        return {"kind": self.kind, **plain(self, defaults)}

    @classmethod
    def from_dict(cls: type[C], data: Any) -> C:
        """The component of this role that the data describes."""
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise ValueError(f"expected a {cls.role.__name__.lower()}, got {data!r}")
        values = dict(data)
        kind = values.pop("kind", None)
        if kind is None:
            raise ValueError(
                f'needs a kind, one of: {", ".join(cls.role.kinds)} (for example kind = "{next(iter(cls.role.kinds))}")'
            )
        if not isinstance(kind, str) or kind not in cls.role.kinds:
            raise ValueError(
                f"kind = {kind!r} is unknown{nearest(kind, cls.role.kinds)}; choose from: {', '.join(cls.role.kinds)}"
            )
        component = cls.role.kinds[kind].from_fields(values)
        if not isinstance(component, cls):
            raise ValueError(f"kind = {kind!r} is not a {cls.__name__}")
        return component

    @classmethod
    def from_fields(cls: type[C], values: dict[str, Any]) -> C:
        """A component of this class, from its fields as plain data."""
        check_keys(values, cls)
        return cls(**values)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A role is validated by the "kind" in the data, a component as a dataclass."""
        if "kind" in cls.__dict__:
            return handler(source)
        return core_schema.no_info_plain_validator_function(
            cls.from_dict,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda component, info: component.to_dict(defaults=not info.exclude_defaults), info_arg=True
            ),
        )


@dataclass_transform(frozen_default=True)
def register(kind: str) -> Callable[[type[C]], type[C]]:
    """Make a class a frozen, validated dataclass and register it in its role under this name.

    >>> import composcope as cs
    >>> @cs.register("diagonal")
    ... class Diagonal(cs.Holdout):
    ...     width: float = 1.0
    ...
    ...     def contains(self, latents, factors=None):
    ...         return (latents[:, 0] - latents[:, 1]).abs() <= self.width
    >>> cs.Holdout.from_dict({"kind": "diagonal", "width": 2})
    Diagonal(width=2.0)
    >>> del cs.Holdout.kinds["diagonal"]
    """

    def enter(cls: type[C]) -> type[C]:
        if not issubclass(cls, Component) or cls.__dict__.get("role") is cls:
            raise TypeError(
                f"{cls.__name__} must derive from a role (Task, Holdout, Encoding, Decoder, Sampling, Penalty)"
            )
        other = cls.role.kinds.get(kind)
        # The same class again is allowed: a notebook cell is rerun, or a plugin file is loaded a second time.
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(
                f"a {cls.role.__name__.lower()} named {kind!r} is already registered: {other.__qualname__}"
            )
        cls.kind = kind
        value: type[C] = dataclass(frozen=True, config=CONFIG)(cls)  # type: ignore[assignment]
        cls.role.kinds[kind] = value
        return value

    return enter


@plain_dataclass(frozen=True)
class FieldDescription:
    """A field as a user writes it; `default` is None if it must be given."""

    name: str
    type: str
    default: str | None


@plain_dataclass(frozen=True)
class Description:
    """A registered component: its role and kind, its class, what it is in one sentence, and its fields."""

    role: str
    kind: str
    name: str
    summary: str
    fields: tuple[FieldDescription, ...]


def describe() -> list[Description]:
    """Every registered component, by role.

    >>> import composcope as cs
    >>> _ = cs.CNN, cs.Square  # loads them
    >>> [entry.fields[0] for entry in describe() if entry.kind == "square"]
    [FieldDescription(name='lo', type='float', default=None)]
    """
    roles = sorted(Component.__subclasses__(), key=lambda role: ROLES.index(role.__name__.lower()))
    return [_description(cls) for role in roles for cls in role.kinds.values()]


def _description(cls: type[Component]) -> Description:
    summary = (cls.__doc__ or "").strip().partition("\n\n")[0]
    hints = get_type_hints(cls)
    described = tuple(
        FieldDescription(field.name, _type_text(hints[field.name]), _default_text(field))
        for field in fields(cls)  # type: ignore[arg-type]  # every registered component is a dataclass
    )
    return Description(cls.role.__name__.lower(), cls.kind, cls.__name__, " ".join(summary.split()), described)


def _type_text(hint: Any) -> str:
    """A type as one would write it: `int | None`, `'dark' | 'bright'`, `tuple[int, ...]`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " | ".join(map(_type_text, inner))
    if origin is Literal:
        return " | ".join(map(repr, inner))
    name = "None" if hint is type(None) else "..." if hint is ... else getattr(hint, "__name__", str(hint))
    return f"{name}[{', '.join(map(_type_text, inner))}]" if inner else name


def _default_text(field: Any) -> str | None:
    default = field.default
    if isinstance(default, FieldInfo):
        default = default.get_default(call_default_factory=True)
    return None if default is MISSING or default is PydanticUndefined else repr(default)


def plain(value: Any, defaults: bool = True) -> dict[str, Any]:
    """A validated dataclass as plain data, without fields that are None.

    Run ids are hashed with `defaults=False`, so that adding a field with a default keeps existing ids valid.
    """
    kind: Any = type(value)
    adapter = _adapter(kind)
    # None is left out because TOML has no null.
    return adapter.dump_python(value, mode="json", exclude_none=True, exclude_defaults=not defaults)


@cache
def _adapter(kind: Any) -> Any:
    return TypeAdapter(kind)


def check_keys(data: Mapping[str, Any], cls: type[Any]) -> None:
    """Raise ValueError for a key that is not a field of the class, suggesting the closest field."""
    any_class: Any = cls
    names = _field_names(any_class)
    for key in data:
        if key not in names:
            raise ValueError(f"unknown key {key!r}{nearest(key, names)}; allowed: {', '.join(names) or 'none'}")


@cache
def _field_names(cls: Any) -> list[str]:
    return [field.name for field in fields(cls)]


def nearest(word: object, words: Iterable[str]) -> str:
    """', did you mean ...?' if a known word is similar, else an empty string."""
    close = difflib.get_close_matches(str(word), list(words), n=1)
    return f", did you mean {close[0]!r}?" if close else ""
