"""Whether a decoder composes, over the course of its training."""

from composcope.monitor.monitor import Moment, Monitor

__all__ = ["Moment", "Monitor"]
