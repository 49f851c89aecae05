"""Runs that were never trained, and what the figures' artists show."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.holdouts import split
from composcope.measures.geometry import factorization, volume_element, volume_summary
from composcope.measures.probes import ProbeScore
from composcope.papers.forced_rendering.base import SIZES, TINY, base_spec
from composcope.runs.run import Run
from composcope.study.drawing import style
from composcope.study.evidence import Evidence
from composcope.study.panel import Panel
from composcope.study.plan import Key
from composcope.tasks.bump import BumpTask


def made_run(spec: Any, **answers: object) -> Run:
    """A run of this spec that was never trained; `answers` replace what it would read or compute."""
    return object.__new__(type("MadeRun", (Run,), {"spec": spec, **answers}))


def made(runs: dict[Key, list[Run]]) -> Evidence:
    """Evidence of the tiny preset from made-up runs."""
    return Evidence(TINY, runs)


def picture(panel: Panel, numbers: Any) -> Figure:
    """The panel's figure of these numbers, in the style of all figures."""
    with style():
        return panel.draw(numbers)


def outlines(axes: Axes) -> list[tuple[str, bool]]:
    """The colour of every outline in these axes, and whether it is a continuous line."""
    lines = [artist for artist in axes.collections if isinstance(artist, LineCollection)]
    return [(to_hex(line.get_edgecolor()[0]), line.get_linestyle()[0][1] is None) for line in lines]


def titles(figure: Figure) -> list[str]:
    """The titles of all axes that have one."""
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def titled(figure: Figure, title: str) -> Axes:
    """The axes of this title, of which there must be one."""
    (axes,) = (axes for axes in figure.axes if axes.get_title() == title)
    return axes


def made_layer(
    probe: float | None = 1.0, beyond: float | None = 1.0, score: float = 1.0, inside: float = 1.0
) -> LayerDiagnosis:
    """A layer with these probes (y's are 0.1 lower), this factorization, and this volume in the hole (1 outside).

    By differences it has the same volume, and half of the fall of factorization.
    """
    sizes = SIZES["tiny"]
    heldout = split(BumpTask(sizes.size), sizes.hole).mask
    metric = torch.eye(2).double().repeat(len(heldout), 1, 1)
    metric[heldout] *= inside
    volume = volume_element(metric)
    factorized = replace(factorization(metric), mean_of_ratios=score, ratio_of_means=(1 + score) / 2)
    geometry = Geometry("exact", ("x", "y"), metric, volume, volume_summary(volume, heldout), factorized)
    probes = None
    if probe is not None and beyond is not None:
        probes = {name: ProbeScore("R2", 1.0, probe - d, beyond - d) for name, d in (("x", 0.0), ("y", 0.1))}
    differences = replace(geometry, method="differences")
    return LayerDiagnosis("made", "", (2,), geometry, probes, None, None, None, differences=differences)


def layered_run(seed: int, trained: list[LayerDiagnosis], untrained: list[LayerDiagnosis] | None = None) -> Run:
    """A run with the bump code that was never trained; its layers are the code, "1", "2", ..., and the image."""
    names = ["code", *map(str, range(1, len(trained) - 1)), "image"][-len(trained) :]
    after, before = (dict(zip(names, some, strict=True)) for some in (trained, untrained or trained))
    diagnosis = SimpleNamespace(layers=after, untrained=before, sizes=(8, 8))
    return made_run(base_spec(TINY, "bump", seed), diagnosis=diagnosis)
