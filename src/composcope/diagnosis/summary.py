"""A diagnosis as text for a terminal: the verdict first, then why, then layer by layer. Lines stay whole."""

import math
from collections.abc import Sequence

from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.whole import Diagnosis
from composcope.measures.probes import ProbeScore
from composcope.measures.superposition import Superposition


def summary(found: Diagnosis) -> str:
    """All blocks that have something to say, with an empty line between them."""
    blocks = [_verdict(found), _error(found), _reasons(found), _layers(found), _notes(found)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _verdict(found: Diagnosis) -> list[str]:
    grid = " x ".join(f"{name} ({size})" for name, size in zip(found.factors, found.sizes, strict=True))
    where = f"{found.heldout} of {found.points} combinations of {grid} held out"
    judged = found.verdict
    if judged is None:
        return [f"verdict: none, {where}"]
    shares = sorted(judged.shares.items(), key=lambda share: -share[1])
    lines = [
        f"verdict: {judged.kind}. It composes {judged.score:.0%} of the held-out images.",
        "  " + ", ".join(f"{name} {share:.0%}" for name, share in shares),
        f"  {where}",
    ]
    if not found.certificate.startswith("composition"):
        lines.append(f"  {found.certificate}")
    return lines


def _error(found: Diagnosis) -> list[str]:
    e = found.error
    rows: list[tuple[str, float | None, float | None]] = [
        ("mse", e.seen_mse, e.heldout_mse),
        ("mse of a blank image", e.seen_blank_mse, e.blank_mse if found.heldout else None),
        ("ssim error", e.seen_ssim_error, e.heldout_ssim_error),
        ("shape correlation", e.seen_correlation, e.heldout_correlation),
        ("position error, pixels", e.seen_position_error, e.heldout_position_error),
        ("within 1 pixel", e.seen_accuracy, e.accuracy),
    ]
    known = [row for row in rows if row[1] is not None or row[2] is not None]
    body = [[name, number(seen), number(held)] for name, seen, held in known]
    return table([["error", "seen", "held-out"], *body])


def _reasons(found: Diagnosis) -> list[str]:
    lines = []
    reported = found.superposition
    if reported is not None:
        names = " + ".join(f"D({name})" for name in found.factors)
        lines += _sum(f"correlation with {names}", reported.parts)
        lines += _sum("correlation with the means of seen outputs", reported.means)
        if reported.blend is not None:
            near = reported.blend
            to = [number(values.double().mean().item()) for values in (near.mse_to_blend, near.mse_to_truth)]
            lines.append(f"mse to the blend of the gap's edges {to[0]}, to the truth {to[1]}")
            lines.append(f"nearer the blend: {near.share_nearer_blend:.0%} of the held-out images")
    kernels = found.kernels
    if kernels.agreement:
        agreement = ", ".join(f"{name} {number(value)}" for name, value in kernels.agreement.items())
        lines.append(f"similarity of held-out to seen images, correlation with kernels: {agreement}")
    made_of = [
        f"{name} {number(value)}"
        for name, value in (
            ("single-factor share", kernels.pf_coeff),
            ("blocks", kernels.block),
            ("effective rank", kernels.effective_rank),
        )
        if value is not None
    ]
    if made_of:
        lines.append(f"the kernel is made of: {', '.join(made_of)}")
    if kernels.fits:
        fits = ", ".join(f"{name} {number(fit.score)}" for name, fit in kernels.fits.items())
        lines.append(f"Gaussian kernel fits, R2 on held-out points: {fits}")
    for name, counted in (found.complexity or {}).items():
        counts = f"{number(counted.mean_to_epsilon)} on average, at most {counted.maximum_to_epsilon}"
        lines.append(f"product terms a pixel (to {counted.epsilon:.0%}), {name}: {counts}")
    return ["why", *("  " + line for line in lines)] if lines else []


def _sum(name: str, found: Superposition | None) -> list[str]:
    return [] if found is None else [f"{name}: {number(found.correlation)} (shuffled {number(found.control)})"]


def _layers(found: Diagnosis) -> list[str]:
    twin = found.untrained or {}
    head = ["layer", "kind", "shape", "log10 dv seen", "held-out", "gap", "factorization"]
    head += ["untrained"] if twin else []
    head += [f"probe {name}" for name in found.factors] + ["main effects", "stripe", "bump"]
    rows = []
    for name, layer in found.layers.items():
        row = [name, layer.kind or "-", " x ".join(map(str, layer.shape)) or "1", *_geometry(layer)]
        row += [_geometry(twin[name])[-1] if name in twin else "-"] if twin else []
        probes = layer.probe or {}
        row += [number(_probe(probes.get(factor), found)) for factor in found.factors]
        shares, tuned = layer.linear_factorization, layer.tuning
        row += [number(shares.main_effects if shares else None)]
        row += [number(tuned.mean_stripe if tuned else None), number(tuned.mean_bump if tuned else None)]
        rows.append(row)
    methods = sorted({layer.geometry.method for layer in found.layers.values() if layer.geometry})
    where = "on held-out points, fitted on seen" if found.heldout else "cross-validated"
    scores = {score.score for layer in found.layers.values() for score in (layer.probe or {}).values()}
    told = " or ".join(sorted(scores, reverse=True)) or "none"
    title = f"layers (geometry: {' and '.join(methods) or 'none'}; probes: {told} {where})"
    return [title, *("  " + line for line in table([head, *rows]))]


def _probe(score: ProbeScore | None, found: Diagnosis) -> float | None:
    if score is None:
        return None
    return score.heldout if found.heldout else score.cross_validated


def _geometry(layer: LayerDiagnosis) -> list[str]:
    shape = layer.geometry
    if shape is None:
        return ["-"] * 4
    volumes = shape.volumes
    return [number(value) for value in (volumes.seen, volumes.heldout, volumes.gap, shape.factorization.mean_of_ratios)]


def _notes(found: Diagnosis) -> list[str]:
    return ["notes", *(f"  {name}: {why}" for name, why in found.notes.items())] if found.notes else []


def number(value: float | None) -> str:
    """Three digits, or a dash for nothing.

    >>> number(0.00012345), number(0.98765), number(12.3), number(None)
    ('1.23e-04', '0.988', '12.3', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.2e}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numeric = [all(text[:1] in "-+.0123456789" for text in column[1:] if text) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if right and place else text.ljust(width)
            for place, (text, width, right) in enumerate(zip(row, widths, numeric, strict=True))
        ).rstrip()
        for row in rows
    ]
