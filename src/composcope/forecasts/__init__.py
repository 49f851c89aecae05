"""What a decoder will draw on held-out combinations, forecast before training from codes and images alone."""

from composcope.forecasts.forecast import Forecast, Prediction, forecast

__all__ = ["Forecast", "Prediction", "forecast"]
