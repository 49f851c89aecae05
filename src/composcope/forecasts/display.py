"""A forecast in a notebook."""

from composcope.display import block, images, line, table
from composcope.forecasts.domain import BLIND
from composcope.forecasts.forecast import Forecast
from composcope.forecasts.wording import headline, rows


def forecast_html(forecast: Forecast) -> str:
    """What will happen, some held-out images as both methods draw them, and their numbers."""
    head, *lines = rows(forecast)
    shown = forecast.prediction.diagnosis.samples
    assert shown is not None  # every diagnosis of a split has them
    pictures = [("true", shown.truth)]
    for prediction in forecast.predictions.values():
        pictures.append((prediction.method, prediction.draw(shown.latents)))
    return block(
        line(f"Forecast: {headline(forecast)}", strong=True),
        *(line(reason) for reason in forecast.abstains),
        *(images(name, row.flip(-2).numpy()) for name, row in pictures),  # row 0 is at the bottom
        table(head, lines),
        line(f"Not seen by any forecast: {'; '.join(BLIND)}."),
    )
