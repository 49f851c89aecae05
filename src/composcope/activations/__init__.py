"""Every layer's output over many codes, and its derivative along each factor, for any module."""

from composcope.activations.adapters import Decode, Encode, Inputs, adapted, encoded, flat_encoding
from composcope.activations.derivatives import code_tangents
from composcope.activations.recording import Pick
from composcope.activations.subject import Layer, Part, Subject

__all__ = [
    "Decode",
    "Encode",
    "Inputs",
    "Layer",
    "Part",
    "Pick",
    "Subject",
    "adapted",
    "code_tangents",
    "encoded",
    "flat_encoding",
]
