"""A run's forecast beside its outcome, as a page shows them."""

from collections.abc import Mapping
from typing import Any

from composcope.diagnosis import Diagnosis
from composcope.diagnosis.wording import percent

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
