"""Forecasts beside stored runs: their numbers are the measures named "forecast"."""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any

from composcope.errors import CannotStore
from composcope.forecasts.forecast import Forecast, forecast
from composcope.forecasts.loglinear import OnProgress
from composcope.store.store import Store

NAME = "forecast"
# Raised when the same spec would be forecast otherwise; older numbers are then not shown.
FORECAST_VERSION = 1


def forecast_run(store: Store, run_id: str, on_progress: OnProgress = lambda done, total: None) -> Forecast:
    """Forecast a stored run from its spec, without its weights, and store the numbers with it if it can be written."""
    folder = store.run_folder(run_id)
    made = forecast(folder.spec(), on_progress)
    with suppress(CannotStore) if folder.read_only else nullcontext():
        folder.save_measures(NAME, FORECAST_VERSION, made.numbers())
    return made


def stored_forecast(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """The numbers that were stored with a run, None if there are none of this version."""
    folder = store.run_folder(run_id)
    return folder.measures({NAME: FORECAST_VERSION}).get(NAME) if folder.has_measures(NAME) else None
