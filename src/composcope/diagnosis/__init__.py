"""The whole set of measures for any module that turns codes into images, and the verdict."""

from composcope.diagnosis.files import load_diagnosis, save_diagnosis
from composcope.diagnosis.whole import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose", "load_diagnosis", "save_diagnosis"]
