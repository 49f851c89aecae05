"""One decoder's diagnosis as a page: the verdict on top, then why. The same part stands in a report for every run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composcope import __version__
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.summary import number
from composcope.experiments.spec import Spec
from composcope.measures.probes import ProbeScore
from composcope.measures.superposition import Superposition
from composcope.oracles import KINDS
from composcope.report.charts import Chart, Line, chart
from composcope.report.diagnosis_maps import diagnosis_maps, kernel_points
from composcope.report.page import render, write_page
from composcope.report.samples import Samples

DRAWN = {
    "composer": "the true image",
    "additive cross": "a cross, the sum of single factors",
    "nearest seen": "a seen image from nearby",
    "superposer": "a mixture of seen images",
    "blank": "nothing",
    "other": "none of these",
}
"""What a held-out image of each class shows, in words."""


@dataclass(frozen=True)
class Measured:
    """A line of a table: what was measured, one or two numbers, and how to read them."""

    name: str
    values: tuple[str, ...]
    reading: str = ""


def write_diagnosis_page(
    diagnosis: Diagnosis, path: Path, title: str, spec: Spec | None = None, samples: Samples | None = None
) -> Path:
    """Write the page of one decoder; `samples` show where the hole is and what is drawn in it."""
    settings = spec.to_toml() if spec is not None else ""
    part = diagnosis_part(diagnosis, samples)
    data = part_data(diagnosis, samples)
    text = render("diagnosis.html", title=title, settings=settings, part=part, data=data, version=__version__)
    return write_page(text, path)


def diagnosis_part(found: Diagnosis, samples: Samples | None) -> dict[str, Any]:
    """What `diagnosis_part.html` says."""
    return {
        "headline": headline(found),
        "judged": judged(found),
        "shares": shares(found.verdict.shares) if found.verdict else [],
        "scope": scope(found),
        "factors": found.factors,
        "flat": len(found.sizes) > 1 and found.error.map.ndim > 1,
        "further": found.factors[2:] if found.error.map.ndim > 2 else (),
        "errors": errors(found),
        "blank": number(found.error.blank_mse),
        "blank_value": found.error.blank_mse,
        "distance": distance_chart(found),
        "samples": sample_labels(found, samples),
        "mixtures": mixtures(found),
        "kernels": kernels(found),
        "kernel_points": kernel_points(found),
        "complexity": complexity(found),
        "layers": [layer_row(found, name, layer) for name, layer in found.layers.items()],
        "charts": charts(found),
        "method": method(found),
        "tuned": any(layer.tuning for layer in found.layers.values()),
        "notes": dict(found.notes),
    }


def part_data(found: Diagnosis, samples: Samples | None) -> dict[str, Any]:
    """What the script draws of it: the maps, and what is said of each layer."""
    return {**diagnosis_maps(found, samples), "layers": [reading(layer) for layer in found.layers.values()]}


def reading(layer: LayerDiagnosis) -> dict[str, str]:
    """One layer in words."""
    shape = " x ".join(map(str, layer.shape)) or "1"
    return {"name": layer.name, "text": f"{layer.name} ({shape}{', ' + layer.kind if layer.kind else ''})"}


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def headline(found: Diagnosis) -> str:
    return f"It {found.verdict.kind}." if found.verdict else "No verdict."


def judged(found: Diagnosis) -> str:
    """The score in words."""
    if found.verdict is None:
        return "Nothing is held out, so there is nothing to compose."
    return f"It composes {percent(found.verdict.score)} of the {found.heldout} held-out images."


def shares(found: Mapping[str, float]) -> list[dict[str, Any]]:
    """The classes that occur, largest first, each with its place in the palette."""
    names = list(KINDS)
    known = sorted((name for name in found if name in KINDS and found[name] > 0), key=lambda name: -found[name])
    return [{"name": n, "drawn": DRAWN[n], "share": found[n], "colour": names.index(n)} for n in known]


def scope(found: Diagnosis) -> str:
    grid = " x ".join(f"{name} ({size})" for name, size in zip(found.factors, found.sizes, strict=True))
    text = f"{found.heldout} of {found.points} combinations of {grid} held out"
    return text if found.certificate.startswith("composition") else f"{text}; {found.certificate}"


def errors(found: Diagnosis) -> list[Measured]:
    """Seen and held-out numbers side by side; what was not measured is left out."""
    e = found.error
    rows: list[tuple[str, float | None, float | None, str]] = [
        ("MSE", e.seen_mse, e.heldout_mse, "mean squared error of a pixel"),
        (
            "MSE of a blank image",
            e.seen_blank_mse,
            e.blank_mse if found.heldout else None,
            "what drawing nothing costs",
        ),
        ("SSIM error", e.seen_ssim_error, e.heldout_ssim_error, "1 less the structural similarity"),
        ("shape correlation", e.seen_correlation, e.heldout_correlation, "with the true image; 1 is right"),
        ("position error", e.seen_position_error, e.heldout_position_error, "pixels from the true place"),
        ("in place", e.seen_accuracy, e.accuracy, "share within 1 pixel of the true place"),
    ]
    known = [row for row in rows if row[1] is not None or row[2] is not None]
    return [Measured(name, (number(seen), number(held)), reading) for name, seen, held, reading in known]


def distance_chart(found: Diagnosis) -> Chart | None:
    """Error by steps into the hole, beside a blank image's."""
    curve, blank = (found.error.by_distance.get(name) for name in ("mse", "blank_mse"))
    if curve is None or blank is None or len(curve.distances) < 2 or len(blank.means) != len(curve.means):
        return None
    drawn = [Line("decoder", curve.means.tolist()), Line("blank image", blank.means.tolist(), control=True)]
    steps = [f"{steps:g}" for steps in curve.distances.tolist()]
    steps[0], steps[-1] = f"{steps[0]} step in", f"{steps[-1]} steps in"
    return chart("held-out MSE by steps into the hole", drawn, steps, 0.0, 0.0)


def sample_labels(found: Diagnosis, samples: Samples | None) -> list[dict[str, str]]:
    """Where each shown image lies, and what it was judged to be."""
    if samples is None:
        return []
    classes = found.verdict.classes if found.verdict else ()
    return [
        {
            "place": ", ".join(f"{name} {value:g}" for name, value in zip(found.factors, where, strict=True)),
            "drawn": DRAWN.get(classes[row], "") if row < len(classes) else "",
        }
        for row, where in zip(samples.rows, samples.latents.tolist(), strict=True)
    ]


def mixtures(found: Diagnosis) -> list[Measured]:
    """How far held-out images are sums or blends of what was seen, each beside its control."""
    reported = found.superposition
    if reported is None:
        return []
    names = " + ".join(f"D({name})" for name in found.factors)
    rows = _sum(f"the sum {names}", reported.parts) + _sum(
        "the mean seen images that share a value, summed", reported.means
    )
    if reported.blend is not None:
        near = reported.blend
        to = [
            number(values.double().mean().item())
            for values in (near.correlation_with_blend, near.correlation_with_truth)
        ]
        reading = f"{percent(near.share_nearer_blend)} of the images are nearer the blend than the truth"
        rows.append(Measured("the blend of the gap's edges; beside it, the truth", (to[0], to[1]), reading))
    return rows


def _sum(name: str, found: Superposition | None) -> list[Measured]:
    return [] if found is None else [Measured(name, (number(found.correlation), number(found.control)))]


def kernels(found: Diagnosis) -> list[Measured]:
    """Which kernel tells how alike the images are."""
    k = found.kernels
    told = {
        "binary": "agreement with the binary kernel",
        "binary smoothed": "agreement with the binary kernel, smoothed",
        "product smoothed": "agreement with the product kernel, smoothed",
        "overlap binary": "agreement of overlaps with the binary kernel",
    }
    rows = [
        Measured(told.get(name, name), (number(value),), "correlation, held-out against seen")
        for name, value in k.agreement.items()
    ]
    for name, value, reading in (
        ("single-factor share", k.pf_coeff, "of the kernel's terms"),
        ("blocks", k.block, "share of its variance told by shared values"),
        ("effective rank", k.effective_rank, "of its Schmidt spectrum"),
    ):
        rows += [Measured(name, (number(value),), reading)] if value is not None else []
    return rows + [
        Measured(f"{name} Gaussian fit", (number(fit.score),), "R², on held-out points") for name, fit in k.fits.items()
    ]


def complexity(found: Diagnosis) -> list[Measured]:
    """Product terms a pixel; a bump that composes has one."""
    return [
        Measured(
            name,
            (number(counted.mean_to_epsilon), str(counted.maximum_to_epsilon)),
            f"to {percent(counted.epsilon)} of the norm",
        )
        for name, counted in (found.complexity or {}).items()
    ]


def layer_row(found: Diagnosis, name: str, layer: LayerDiagnosis) -> dict[str, Any]:
    """One layer's numbers in the order of the table's columns."""
    twin = (found.untrained or {}).get(name)
    shape, tuned = layer.geometry, layer.tuning
    return {
        "name": name,
        "kind": layer.kind or "-",
        "shape": " x ".join(map(str, layer.shape)) or "1",
        "gap": number(shape.volumes.gap if shape else None),
        "factorization": number(_factorization(layer)),
        "untrained": number(_factorization(twin)),
        "probes": [number(_probe(layer, factor, found)) for factor in found.factors],
        "main": number(_main(layer)),
        "stripe": number(tuned.mean_stripe if tuned else None),
        "bump": number(tuned.mean_bump if tuned else None),
    }


def charts(found: Diagnosis) -> list[dict[str, Any]]:
    """The layers' numbers as lines, the untrained network's dashed beside them."""
    layers, twin = list(found.layers.values()), found.untrained or {}
    names = [layer.name for layer in layers]
    before = [twin.get(name) for name in names]

    def pair(get: Any) -> list[Line]:
        drawn = [Line("trained", [get(layer) for layer in layers])]
        return [*drawn, Line("untrained", [get(layer) for layer in before], control=True)] if twin else drawn

    probes = [Line(factor, [_probe(layer, factor, found) for layer in layers]) for factor in found.factors]
    wanted = [
        ("Volume gap", "held-out less seen, log10; 0 is even", pair(_gap), -0.1, 0.1),
        ("Probes", f"{probe_kind(found)}; 1 is readable", probes, 0.0, 1.0),
        ("Factorization", "of the metric; 1 is at right angles", pair(_factorization), 0.8, 1.0),
        ("Main effects", "share of variance of one factor alone", pair(_main), 0.0, 1.0),
    ]
    found_charts = [
        {"title": title, "reading": reading, "lines": lines, "drawn": chart(title, lines, names, low, high)}
        for title, reading, lines, low, high in wanted
    ]
    return [one for one in found_charts if one["drawn"] is not None]


def probe_kind(found: Diagnosis) -> str:
    """What the probes' numbers are, and on which points."""
    kinds = sorted(
        {score.score for layer in found.layers.values() for score in (layer.probe or {}).values()}, reverse=True
    )
    told = " or ".join("R²" if kind == "R2" else kind for kind in kinds) or "none"
    return f"{told} {'on held-out points, fitted on seen' if found.heldout else 'cross-validated'}"


def method(found: Diagnosis) -> str:
    methods = sorted({layer.geometry.method for layer in found.layers.values() if layer.geometry})
    return " and ".join("by differences on the grid" if name == "differences" else name for name in methods)


def _gap(layer: LayerDiagnosis | None) -> float | None:
    return layer.geometry.volumes.gap if layer and layer.geometry else None


def _factorization(layer: LayerDiagnosis | None) -> float | None:
    return layer.geometry.factorization.mean_of_ratios if layer and layer.geometry else None


def _main(layer: LayerDiagnosis | None) -> float | None:
    return layer.linear_factorization.main_effects if layer and layer.linear_factorization else None


def _probe(layer: LayerDiagnosis, factor: str, found: Diagnosis) -> float | None:
    score: ProbeScore | None = (layer.probe or {}).get(factor)
    if score is None:
        return None
    return score.heldout if found.heldout else score.cross_validated
