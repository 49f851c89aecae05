"""The ICML 2025 paper "Compositional Generalization via Forced Rendering of Disentangled Latents" as a study.

One folder per experiment, with its figures (sizes, plans, what is shown), their drawing and its claims:

    codes/       1a-c, 5     every input code fails on held-out combinations
    similarity/  1d, 1e, 8   held-out images as sums, and which images are alike
    depths/      2, 10-14    what happens from layer to layer, for networks of several depths and kinds
    lowrank/     3, 6        the cure by architecture
    stripes/     4, 7, 15    the cure by data
    scaling/     4c          how much data each needs
    rotation/    9           one factor: a gap of angles is filled by a blend
    controls/                another hole, no hole, the reverse map
    cures.py                 the overview
    reentanglement.py        whether entanglement goes with the failure

Shared: base.py (presets, the base run, its errors), layers.py and volumes.py (numbers by layer), drawing.py.
"""

from composcope.papers.forced_rendering.study import STUDY

__all__ = ["STUDY"]
