"""What there is: recipes, parts and options, as the library's registries have them."""

from __future__ import annotations

from dataclasses import dataclass

from gala_tta import _core


@dataclass(frozen=True)
class Option:
    """An option with its type, its default and what it is for."""

    name: str
    type: str
    default: str
    help: str


@dataclass(frozen=True)
class Part:
    """A part, or a recipe, that can be named, and its options."""

    name: str
    summary: str
    options: tuple[Option, ...]


def list_parts(kind: str) -> list[Part]:
    """Return the parts of a kind: "loss", "select", "optimizer", "norm", ..."""
    return [
        Part(name, summary, tuple(Option(*option) for option in options))
        for name, summary, options in _core.list_parts(kind)
    ]


def list_methods() -> list[Part]:
    """Return the recipes; their options are what they set."""
    return list_parts("method")


def describe_options() -> list[Option]:
    """Return every option of a method, as `Adapter` takes them."""
    return [Option(*option) for option in _core.describe_method_options()]
