"""One decoder's diagnosis as a page: the verdict first, then why. A report has the same section for every run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composcope import __version__
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.quantities import Quantity, layer_quantities
from composcope.diagnosis.summary import broken_pairs, confusions, factor_rows, methods, probe_kind, score_text
from composcope.diagnosis.summary import headline as verdict_headline
from composcope.diagnosis.summary import scope as heldout_scope
from composcope.diagnosis.tables import layer_table, shape_text, tables, value
from composcope.display import number, percent
from composcope.forecasts import Forecast
from composcope.pages.charts import Chart, Line, chart
from composcope.pages.maps import diagnosis_maps, kernel_points, sliced
from composcope.pages.page import render, write_page
from composcope.pages.reader_page import reader_part
from composcope.runs.spec import Spec
from composcope.tasks.base import Images
from composcope.verdict import KINDS

DASH = "-"


def forecast_part(forecast: Mapping[str, Any], diagnosis: Diagnosis) -> dict[str, Any]:
    """What the page says: reasons to abstain, or a line per quantity with what was forecast and what happened.

    - `forecast`: the numbers of a forecast, as they are stored with a run.
    """
    method = forecast["methods"][forecast["method"]]
    verdict = diagnosis.verdict
    rows = [
        ("held-out images", method["kind"], verdict.kind if verdict else DASH),
        ("composed", _share(method["score"]), _share(verdict.score if verdict else None)),
        ("in place, within 1 pixel", _share(method["accuracy"]), _share(diagnosis.error.accuracy)),
    ]
    for name, share in method["factors"].items():
        rows.append((f"{name} is right", _share(share), _share(verdict.factors.get(name) if verdict else None)))
    return {
        "method": forecast["method"],
        "fit": f"{method['r2']:.2f}",
        "abstains": forecast["abstains"],
        "rows": [row for row in rows if row[1:] != (DASH, DASH)],
    }


def _share(value: float | None) -> str:
    return DASH if value is None else percent(value)


DRAWN = {
    "composer": "the true image",
    "additive cross": "a cross, the sum of single factors",
    "nearest seen": "a seen image from nearby",
    "superposer": "a mixture of seen images",
    "blank": "nothing",
    "other": "none of these",
    "wrong combination": "the true image of another combination",
    "additive": "a sum of what each factor does by itself",
}
"""What a held-out image of each class shows, in words."""

SAMPLE_ROWS = ("truth", "decoder")


@dataclass(frozen=True)
class LayerChart:
    """Lines over the layers with a title and how to read them; `drawn` says where everything goes."""

    title: str
    reading: str
    lines: list[Line]
    drawn: Chart


def write_diagnosis_page(
    diagnosis: Diagnosis,
    path: Path,
    title: str,
    spec: Spec | None = None,
    forecast: Forecast | None = None,
) -> Path:
    """Write the page of one decoder; `forecast`: what was to be expected before training, beside what happened."""
    if diagnosis.verdict is not None and diagnosis.verdict.reader is not None:
        part = reader_part(diagnosis)
        return write_page(render("reader.html", title=title, part=part, version=__version__), path)
    settings = spec.to_toml() if spec is not None else ""
    samples = diagnosis.samples
    part = diagnosis_part(diagnosis, None if forecast is None else forecast.numbers())
    expected = None if forecast is None or samples is None else forecast.prediction.draw(samples.latents)
    if expected is not None:
        part["sample_rows"] = (*SAMPLE_ROWS, "forecast")
    data = part_data(diagnosis, expected)
    text = render("diagnosis.html", title=title, settings=settings, part=part, data=data, version=__version__)
    return write_page(text, path)


def diagnosis_part(diagnosis: Diagnosis, forecast: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `diagnosis_part.html` says; `forecast`: the numbers of one, if it is to be shown."""
    by_name = {table.name: table for table in tables(diagnosis)}
    return {
        "headline": headline(diagnosis),
        "score": score(diagnosis),
        "shares": shares(diagnosis.verdict.shares) if diagnosis.verdict else [],
        "seen_shares": shares(diagnosis.verdict.seen_shares) if diagnosis.verdict else [],
        "right": factor_rows(diagnosis),
        "confusions": confusions(diagnosis.verdict) if diagnosis.verdict else [],
        "broken": broken_pairs(diagnosis.verdict) if diagnosis.verdict else [],
        "scope": scope(diagnosis),
        "factors": diagnosis.factors,
        "flat": len(diagnosis.sizes) > 1 and diagnosis.error.map.ndim > 1,
        "further": diagnosis.factors[2:] if diagnosis.error.map.ndim > 2 and not sliced(diagnosis) else (),
        "sliced": sliced(diagnosis),
        "errors": by_name["error"],
        "kernels": by_name.get("kernels"),
        "orders": orders_chart(diagnosis),
        "reasons": [table for name, table in by_name.items() if name not in ("error", "kernels")],
        "blank": number(diagnosis.error.blank_mse),
        "blank_value": diagnosis.error.blank_mse,
        "distance": distance_chart(diagnosis),
        "samples": sample_labels(diagnosis),
        "sample_rows": SAMPLE_ROWS,
        "forecast": forecast_part(forecast, diagnosis) if forecast else None,
        "kernel_points": kernel_points(diagnosis) if len(diagnosis.kernels.rows) else "",
        "layers": layer_table(diagnosis),
        "charts": charts(diagnosis),
        "method": methods(diagnosis).replace("differences", "by differences on the grid"),
        "probes": probe_kind(diagnosis).replace("R2", "R²"),
        "notes": dict(diagnosis.notes),
    }


def part_data(diagnosis: Diagnosis, expected: Images | None = None) -> dict[str, Any]:
    """What the script draws: the maps, and a description of each layer; `expected`: images forecast at the samples."""
    return {
        **diagnosis_maps(diagnosis, expected),
        "layers": [layer_label(layer) for layer in diagnosis.layers.values()],
    }


def layer_label(layer: LayerDiagnosis) -> dict[str, str]:
    """A layer's name, and the same with its shape and kind."""
    kind = f", {layer.kind}" if layer.kind else ""
    return {"name": layer.name, "text": f"{layer.name} ({shape_text(layer)}{kind})"}


def headline(diagnosis: Diagnosis) -> str:
    return f"It {verdict_headline(diagnosis.verdict)}." if diagnosis.verdict else "No verdict."


def score(diagnosis: Diagnosis) -> str:
    """The score in words."""
    if diagnosis.verdict is None:
        return "Nothing is held out, so there is nothing to compose."
    return score_text(diagnosis.verdict) or f"{diagnosis.heldout} combinations are held out."


def shares(by_class: Mapping[str, float]) -> list[dict[str, Any]]:
    """The classes that occur, largest first, each with its index in the palette."""
    names = list(KINDS)
    occurring = sorted(
        (name for name in by_class if name in KINDS and by_class[name] > 0), key=lambda name: -by_class[name]
    )
    return [{"name": n, "drawn": DRAWN[n], "share": by_class[n], "colour": names.index(n)} for n in occurring]


def scope(diagnosis: Diagnosis) -> str:
    """What is held out, and whether that tests composition."""
    text = heldout_scope(diagnosis)
    return text if diagnosis.certificate.startswith("composition") else f"{text}; {diagnosis.certificate}"


def distance_chart(diagnosis: Diagnosis) -> Chart | None:
    """Error by steps into the hole, beside a blank image's."""
    curve, blank = (diagnosis.error.by_distance.get(name) for name in ("mse", "blank_mse"))
    if curve is None or blank is None or len(curve.distances) < 2 or len(blank.means) != len(curve.means):
        return None
    lines = [Line("decoder", curve.means.tolist()), Line("blank image", blank.means.tolist(), control=True)]
    steps = [f"{steps:g}" for steps in curve.distances.tolist()]
    steps[0], steps[-1] = f"{steps[0]} step in", f"{steps[-1]} steps in"
    return chart("held-out MSE by steps into the hole", lines, steps, 0.0, 0.0)


def orders_chart(diagnosis: Diagnosis) -> Chart | None:
    """The share of the kernel's terms of at most 1, 2, ... factors; None for two factors, where one number says it."""
    shares = diagnosis.kernels.pf_by_order
    if shares is None or len(shares) < 3:
        return None
    labels = ["one factor", *(f"up to {order}" for order in range(2, len(shares) + 1))]
    return chart("share of the kernel's terms by order", [Line("share", list(shares))], labels, 0.0, 1.0)


def sample_labels(diagnosis: Diagnosis) -> list[dict[str, str]]:
    """The factor values of each sample, and the class of what is drawn."""
    samples = diagnosis.samples
    if samples is None:
        return []
    classes = diagnosis.verdict.classes if diagnosis.verdict else ()
    return [
        {
            "place": ", ".join(
                f"{name} {value_label(diagnosis, name, value)}"
                for name, value in zip(diagnosis.factors, latents, strict=True)
            ),
            "drawn": DRAWN.get(classes[row], "") if row < len(classes) else "",
        }
        for row, latents in zip(samples.rows, samples.latents.tolist(), strict=True)
    ]


def value_label(diagnosis: Diagnosis, factor: str, value: float) -> str:
    """A factor's value by its name, if it has one."""
    names = diagnosis.verdict.names.get(factor) if diagnosis.verdict else None
    if diagnosis.verdict is None or names is None:
        return f"{value:g}"
    return dict(zip(diagnosis.verdict.values[factor], names, strict=True)).get(value, f"{value:g}")


def charts(diagnosis: Diagnosis) -> list[LayerChart]:
    """The quantities of layers that have a chart: those of one chart as its lines, a single one with its control."""
    by_chart: dict[str, list[Quantity]] = {}
    for quantity in layer_quantities(diagnosis.factors, diagnosis.heldout > 0):
        if quantity.chart:
            by_chart.setdefault(quantity.chart, []).append(quantity)
    layer_charts = [_layer_chart(diagnosis, title, quantities) for title, quantities in by_chart.items()]
    return [each for each in layer_charts if each is not None]


def _layer_chart(diagnosis: Diagnosis, title: str, quantities: list[Quantity]) -> LayerChart | None:
    """One line per quantity; if there is only one, the untrained network's dashed beside it."""
    layers, twin = diagnosis.layers, diagnosis.untrained or {}
    first = quantities[0]
    if len(quantities) == 1:
        lines = [Line("trained", [value(first, layer) for layer in layers.values()])]
        if twin:
            untrained = [value(first, twin[name]) if name in twin else None for name in layers]
            lines.append(Line("untrained", untrained, control=True))
    else:
        lines = [Line(quantity.title, [value(quantity, layer) for layer in layers.values()]) for quantity in quantities]
    coordinates = chart(title, lines, list(layers), first.low, first.high)
    return None if coordinates is None else LayerChart(title, first.reading, lines, coordinates)
