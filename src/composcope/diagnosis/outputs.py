"""Old names of what moved to `errors` and `truth`."""  # until the paper moves

from composcope.diagnosis.errors import Errors
from composcope.diagnosis.truth import additive_cross

__all__ = ["Errors", "additive_cross"]
