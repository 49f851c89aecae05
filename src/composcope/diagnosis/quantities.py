"""Every quantity of a diagnosis, described once: for the JSON, the terminal, the page and its charts.

To add one, write the measure as a function in `measures/` and describe it here: a `Quantity` in one of the groups
below, with a `get` if the diagnosis has the number already, or a `measure` if it is to be computed. It then appears
in `Diagnosis.numbers()`, in `Store.frame()`, in the terminal and on the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.points import Points
from composcope.diagnosis.structure import layer_blocks, shared_blocks
from composcope.measures.geometry import Factorization, VolumeSummary
from composcope.tasks.base import Images, Task
from composcope.verdict.references import Pictures


@dataclass(frozen=True)
class Material:
    """What a quantity of the images may be measured from; `outputs` and `targets` are foregrounds over the points."""

    task: Task
    points: Points
    outputs: Images
    targets: Pictures


@dataclass(frozen=True)
class Quantity:
    """One quantity: a number, or a word, list or table of numbers.

    - `key`: its dotted name in `numbers()` and in the frame. For layers, the layer's name comes after the first word.
    - `title`: its name in tables, empty for what is only among the numbers. Quantities of one title share a row, each
      in its own `column`. `reading`: how to read it.
    - `low`, `high`: the range that its chart shows at least. `chart`: the chart over layers in which it is a line.
    - `compare`: whether the table of layers shows that of the untrained network beside it.
    - `get`: its value from the diagnosis (or layer); by default the key is a path of fields that leads to it.
    - `measure`: computes it from the `Material` (or, for a layer, from the `LayerDiagnosis`) when the diagnosis is
      made, to be stored in `more`. It returns None where it does not apply.
    """

    key: str
    title: str = ""
    reading: str = ""
    low: float = 0.0
    high: float = 0.0
    column: str = ""
    chart: str = ""
    compare: bool = False
    get: Callable[[Any], Any] | None = None
    measure: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Group:
    """Quantities of the images that belong together: a table with a title and columns."""

    name: str
    title: str
    columns: tuple[str, ...]
    quantities: tuple[Quantity, ...]


def seen_and_heldout(title: str, seen: str, heldout: str, reading: str) -> tuple[Quantity, Quantity]:
    return (
        Quantity(f"error.{seen}", title, reading, column="seen"),
        Quantity(f"error.{heldout}", title, reading, column="held-out"),
    )


def with_control(title: str, key: str) -> tuple[Quantity, Quantity]:
    return (
        Quantity(f"superposition.{key}.correlation", title, column="correlation"),
        Quantity(f"superposition.{key}.control", title, column="control"),
    )


def agreement(name: str, title: str) -> Quantity:
    return Quantity(f"kernels.agreement.{name}", title, "correlation, held-out against seen")


def gap_blend(name: str, title: str = "", column: str = "correlation", reading: str = "") -> Quantity:
    def get(diagnosis: Diagnosis) -> float | None:
        blend = diagnosis.superposition.blend if diagnosis.superposition else None
        return None if blend is None else {**blend.means, "share_nearer_blend": blend.share_nearer_blend}[name]

    return Quantity(f"superposition.blend.{name}", title, reading, column=column, get=get)


ERROR = Group(
    "error",
    "error",
    ("seen", "held-out"),
    (
        *seen_and_heldout("MSE", "seen_mse", "heldout_mse", "mean squared error per pixel"),
        *seen_and_heldout("MSE of a blank image", "seen_blank_mse", "blank_mse", "the error of drawing nothing"),
        *seen_and_heldout("SSIM error", "seen_ssim_error", "heldout_ssim_error", "1 minus the structural similarity"),
        *seen_and_heldout(
            "shape correlation", "seen_correlation", "heldout_correlation", "with the true image; 1 is right"
        ),
        *seen_and_heldout(
            "position error", "seen_position_error", "heldout_position_error", "pixels from the true position"
        ),
        *seen_and_heldout("within 1 pixel", "seen_accuracy", "accuracy", "share of images, of the true position"),
    ),
)

SUPERPOSITION = Group(
    "superposition",
    "held-out images against",
    ("correlation", "control"),
    (
        *with_control("the sum {parts}", "parts"),
        *with_control("the mean seen images that share a value, summed", "means"),
        gap_blend("correlation_with_blend", "the blend of the gap's edges; beside it, the truth"),
        gap_blend("correlation_with_truth", "the blend of the gap's edges; beside it, the truth", "control"),
        gap_blend("share_nearer_blend", "share of images nearer the blend than the truth", reading="by MSE"),
        gap_blend("mse_to_blend"),
        gap_blend("mse_to_truth"),
    ),
)

KERNELS = Group(
    "kernels",
    "kernel",
    ("",),
    (
        agreement("binary", "agreement with the binary kernel"),
        agreement("binary smoothed", "agreement with the binary kernel, smoothed"),
        agreement("product smoothed", "agreement with the product kernel, smoothed"),
        agreement("overlap binary", "agreement of overlaps with the binary kernel"),
        Quantity("kernels.pf_coeff", "single-factor share", "of the kernel's terms"),
        Quantity(
            "kernels.pf_two", "share of terms of one or two factors", "of the kernel's terms",
            get=lambda diagnosis: _of_two(diagnosis),
        ),
        Quantity("kernels.block", "blocks", "share of its variance explained by shared values"),
        Quantity("kernels.effective_rank", "effective rank", "of its Schmidt spectrum"),
        Quantity(
            "kernels.cp_rank", "products of single-factor kernels", "that make up 95 % of it",
            get=lambda diagnosis: _rank(diagnosis),
        ),
        Quantity("kernels.fits.factorized.score", "factorized Gaussian fit", "R², on held-out points"),
        Quantity("kernels.fits.radial.score", "radial Gaussian fit", "R², on held-out points"),
    ),
)  # fmt: skip

COMPLEXITY = Group(
    "complexity",
    "product terms per pixel",
    ("mean", "most"),
    tuple(
        Quantity(f"complexity.{images}.{key}_to_epsilon", images, "to 5 % of the norm", column=column)
        for images in ("targets", "outputs")
        for key, column in (("mean", "mean"), ("maximum", "most"))
    ),
)

BLOCKS = Group(
    "blocks",
    "factors that act together",
    ("",),
    (
        Quantity(
            "blocks.targets", "targets", "blocks whose product is the image, to 5 %",
            measure=lambda material: shared_blocks(material.targets, material.points),
        ),
        Quantity(
            "blocks.outputs", "outputs", "more factors together than in the targets: mixed by the decoder",
            measure=lambda material: shared_blocks(material.outputs, material.points),
        ),
    ),
)  # fmt: skip

GROUPS = (ERROR, SUPERPOSITION, KERNELS, COMPLEXITY, BLOCKS)

# Of the verdict among the numbers (docs/measures.md): raised when a key is renamed, removed or means something else.
VERDICT_VERSION = 1

UNTITLED = (
    *(
        Quantity(f"verdict.{name}")
        for name in ("kind", "score", "shares", "interval", "seen_shares", "judged", "spread")
    ),
    *(Quantity(f"verdict.{name}") for name in ("factors", "within_one_step", "seen_factors", "evidence")),
    Quantity("verdict.version", get=lambda diagnosis: VERDICT_VERSION if diagnosis.verdict else None),
    Quantity("verdict.reader", get=lambda diagnosis: _calibration(diagnosis)),
    *(Quantity(f"kernels.{name}") for name in ("schmidt_rank", "terms", "mixed", "agreement", "fits", "pf_by_order")),
    Quantity("kernels.cp_errors", get=lambda diagnosis: diagnosis.kernels.rank and list(diagnosis.kernels.rank.errors)),
    *(Quantity(f"complexity.{images}.{name}") for images in ("targets", "outputs") for name in ("mean", "maximum")),
    Quantity("by_distance", get=lambda diagnosis: _curves(diagnosis)),
    Quantity("notes"),
)
"""What is among the numbers but in no table."""


def _of_two(diagnosis: Diagnosis) -> float | None:
    """PF_Coeff of single and pairwise terms, where there are others."""
    orders = diagnosis.kernels.pf_by_order
    return orders[1] if orders is not None and len(orders) > 2 else None


def _rank(diagnosis: Diagnosis) -> int | str | None:
    """The kernel's CP rank, "more than 5" where the search went no further."""
    rank = diagnosis.kernels.rank
    return None if rank is None else f"more than {len(rank.errors)}" if rank.rank is None else rank.rank


def _calibration(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """What readers' answers rest on, without the images that are shown."""
    reader = diagnosis.verdict.reader if diagnosis.verdict else None
    if reader is None:
        return None
    plain = {item.name: getattr(reader, item.name) for item in fields(reader)}
    shown = {name: plain[name] for name in plain if name not in ("latents", "drawn", "classes", "heldout", "confusion")}
    return {**shown, "confusion": {name: table.tolist() for name, table in reader.confusion.items()}}


def _curves(diagnosis: Diagnosis) -> dict[str, dict[str, list[float]]]:
    """Every error's mean at each distance from the edge of the hole."""
    return {
        name: {part: getattr(curve, part).tolist() for part in ("distances", "means", "counts")}
        for name, curve in diagnosis.error.by_distance.items()
    }


def image_quantities() -> list[Quantity]:
    """Every quantity of the images, those in no table last."""
    return [*(quantity for group in GROUPS for quantity in group.quantities), *UNTITLED]


def layer_quantities(factors: Sequence[str], heldout: bool) -> list[Quantity]:
    """Every quantity of a layer, in the order of the table's columns; each factor has probes of its own."""
    return list(_layer_quantities(tuple(factors), heldout))


@cache
def _layer_quantities(factors: tuple[str, ...], heldout: bool) -> list[Quantity]:
    return [
        Quantity("geometry.method", get=lambda layer: layer.geometry and layer.geometry.method),
        _volume("seen", "log10 volume, seen"),
        _volume("heldout", "held-out"),
        _volume("gap", "volume gap", "held-out minus seen, log10; 0 is even", -0.1, 0.1, chart="Volume gap"),
        _volume("floor"),
        _volume("floored"),
        _factorization(
            "mean_of_ratios", "factorization", "of the metric; 1: at right angles", 0.8, 1.0,
            chart="Factorization", compare=True,
        ),
        _factorization("ratio_of_means"),
        _factorization("left_out"),
        *(quantity for factor in factors for quantity in _probes(factor, heldout)),
        Quantity(
            "linear_factorization.main_effects", "main effects", "share of variance of one factor alone", 0.0, 1.0,
            chart="Main effects", get=_main_effects,
        ),
        Quantity(
            "linear_factorization.blocks", "mixes" if len(factors) > 2 else "", "factors that share a block",
            get=lambda layer: layer_blocks(layer.linear_factorization),
        ),
        Quantity("linear_factorization.by_term"),
        Quantity("linear_factorization.by_order"),
        *(_curvature(factor) for factor in factors),
        Quantity("tuning.stripe", "stripe", "mean over units; 1: of one factor", get=_tuning("mean_stripe")),
        Quantity("tuning.bump", "bump", "mean over units; 1: of one combination", get=_tuning("mean_bump")),
        Quantity("tuning.silent"),
        Quantity("tuning.units", get=lambda layer: layer.tuning and len(layer.tuning.stripe)),
    ]  # fmt: skip


def _volume(
    name: str, title: str = "", reading: str = "", low: float = 0, high: float = 0, chart: str = ""
) -> Quantity:
    def get(layer: LayerDiagnosis) -> Any:
        volumes: VolumeSummary | None = layer.geometry.volumes if layer.geometry else None
        return None if volumes is None else getattr(volumes, name)

    return Quantity(f"geometry.volume.{name}", title, reading, low, high, chart=chart, get=get)


def _factorization(
    name: str, title: str = "", reading: str = "", low: float = 0, high: float = 0, **more: Any
) -> Quantity:
    def get(layer: LayerDiagnosis) -> Any:
        ratios: Factorization | None = layer.geometry.factorization if layer.geometry else None
        return None if ratios is None else getattr(ratios, name)

    return Quantity(f"geometry.factorization.{name}", title, reading, low, high, get=get, **more)


def _probes(factor: str, heldout: bool) -> list[Quantity]:
    """A factor's probe: the score that counts is on held-out points, or cross-validated where there are none."""
    main = "heldout" if heldout else "cross_validated"

    def get(name: str) -> Callable[[LayerDiagnosis], Any]:
        return lambda layer: getattr(layer.probe[factor], name) if layer.probe and factor in layer.probe else None

    where = "on held-out points, fitted on seen" if heldout else "cross-validated"
    quantities = [
        Quantity(f"probes.{factor}.{name}", get=get(name))
        for name in ("score", "in_sample", "cross_validated", "heldout")
        if name != main
    ]
    key, title = f"probes.{factor}.{main}", f"probe {factor}"
    return [Quantity(key, title, f"{where}; 1 is readable", 0.0, 1.0, chart="Probes", get=get(main)), *quantities]


def _curvature(factor: str) -> Quantity:
    def get(layer: LayerDiagnosis) -> float | None:
        return layer.curvature.means.get(factor) if layer.curvature else None

    reading = "mean over the grid; 0: straight, 1: like a full circle"
    return Quantity(f"curvature.{factor}", f"curvature {factor}", reading, 0.0, 1.0, chart="Curvature", get=get)


def _main_effects(layer: LayerDiagnosis) -> float | None:
    return layer.linear_factorization.main_effects if layer.linear_factorization else None


def _tuning(name: str) -> Callable[[LayerDiagnosis], Any]:
    return lambda layer: getattr(layer.tuning, name) if layer.tuning else None


def measured(quantities: Sequence[Quantity], material: Any) -> Mapping[str, Any]:
    """The values of those quantities that are computed when the diagnosis is made, by key."""
    return {quantity.key: quantity.measure(material) for quantity in quantities if quantity.measure is not None}
