"""Old names of what moved to `run` and `diagnose_runs`."""  # until the paper moves

from composcope.diagnosis import Diagnosis
from composcope.experiments.diagnose_runs import measure_run
from composcope.experiments.run import load
from composcope.experiments.store import Store

__all__ = ["measure_run", "stored_diagnosis"]


def stored_diagnosis(store: Store, run_id: str) -> Diagnosis:
    return load(store, run_id).diagnosis
