"""A forecast in words: for the terminal, for a notebook, and as plain numbers."""

from collections.abc import Mapping
from typing import Any

from composcope.diagnosis.summary import scope
from composcope.display import aligned, block, images, line, percent, table
from composcope.forecasts.forecast import BLIND, Forecast, Prediction
from composcope.plain import to_plain


def headline(forecast: Forecast) -> str:
    """What will happen, in a sentence or two."""
    if forecast.abstains:
        return "abstains: this is outside what it is known to forecast"
    prediction = forecast.prediction
    return f"{prediction.kind}. It will compose {percent(prediction.score)} of the held-out images."


def rows(forecast: Forecast) -> list[list[str]]:
    """One line per quantity, one column per method; the one that is used comes first."""
    ordered = sorted(forecast.predictions.values(), key=lambda prediction: prediction.method != forecast.method)
    lines = [["", *(prediction.method for prediction in ordered)]]
    texts = [_texts(prediction) for prediction in ordered]
    return lines + [[name, *(text[name] for text in texts)] for name in texts[0]]


def _texts(prediction: Prediction) -> dict[str, str]:
    texts = {"held-out images": prediction.kind, "composed": percent(prediction.score)}
    if prediction.accuracy is not None:
        texts["in place, within 1 pixel"] = percent(prediction.accuracy)
    texts |= {f"{name} is right": percent(share) for name, share in prediction.verdict.factors.items()}
    return texts | {"fit to the training images, R2": f"{prediction.fit:.2f}"}


def summary(forecast: Forecast) -> str:
    """The forecast as text for a terminal."""
    lines = [f"forecast: {headline(forecast)}", *(f"  {reason}" for reason in forecast.abstains)]
    lines.append(f"  {scope(forecast.prediction.diagnosis)}")
    if not forecast.abstains:
        lines.append(f"  by the {forecast.method} regression, which resembles {type(forecast.spec.decoder).__name__}s")
    lines += ["", *aligned(rows(forecast)), "", f"not seen by any forecast: {'; '.join(BLIND)}"]
    return "\n".join(lines)


def numbers(forecast: Forecast) -> dict[str, Any]:
    """The forecast's numbers and words, and those of both methods by name: plain data, ready for JSON."""
    tree = {
        "method": forecast.method,
        "abstains": list(forecast.abstains),
        "kind": forecast.kind,
        "score": forecast.score,
        "accuracy": forecast.accuracy,
        "r2": forecast.r2,
        "methods": {name: _numbers(prediction) for name, prediction in forecast.predictions.items()},
    }
    plain: dict[str, Any] = to_plain(tree, {})
    return plain


def _numbers(prediction: Prediction) -> Mapping[str, Any]:
    verdict = prediction.verdict
    return {
        "kind": prediction.kind,
        "score": prediction.score,
        "shares": verdict.shares,
        "factors": verdict.factors,
        "accuracy": prediction.accuracy,
        "r2": prediction.fit,
    }


def forecast_html(forecast: Forecast) -> str:
    """What will happen, some held-out images as both methods draw them, and their numbers."""
    head, *lines = rows(forecast)
    samples = forecast.prediction.diagnosis.samples
    assert samples is not None  # every diagnosis of a split has them
    pictures = [("true", samples.truth)]
    for prediction in forecast.predictions.values():
        pictures.append((prediction.method, prediction.draw(samples.latents)))
    return block(
        line(f"Forecast: {headline(forecast)}", strong=True),
        *(line(reason) for reason in forecast.abstains),
        *(images(name, row.flip(-2).numpy()) for name, row in pictures),  # row 0 is at the bottom
        table(head, lines),
        line(f"Not seen by any forecast: {'; '.join(BLIND)}."),
    )
