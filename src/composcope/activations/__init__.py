"""Every layer's output over many codes, and its derivative along each factor, for any module."""

from composcope.activations.derivatives import Encode, code_tangents
from composcope.activations.recording import Pick
from composcope.activations.subject import Layer, Part, Subject

__all__ = ["Encode", "Layer", "Part", "Pick", "Subject", "code_tangents"]
