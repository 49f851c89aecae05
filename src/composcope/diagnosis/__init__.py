"""The whole set of measures for any module that turns codes into images, and the verdict."""

from composcope.diagnosis.diagnose import diagnose
from composcope.diagnosis.diagnosis import Diagnosis, load_diagnosis, save_diagnosis

__all__ = ["Diagnosis", "diagnose", "load_diagnosis", "save_diagnosis"]
