from .components import register
from .decoders.base import Decoder
from .decoders.cnn import CNN
from .decoders.mlp import MLP
from .encodings import Bump, Circle, Encoding, OneHot, PerFactor, Positional, Rate, Thermometer
from .errors import BadInput, ComposcopeError, RunFailed
from .experiments.executor import run_all
from .experiments.run import Result, run
from .experiments.spec import NotComposition, Spec
from .experiments.store import Store
from .experiments.sweep import Sweep
from .factors import Factor
from .holdouts import (
    Box,
    Complement,
    Corner,
    Cross,
    Holdout,
    Intersection,
    Interval,
    Nothing,
    Split,
    Square,
    Union,
    split,
)
from .penalties import Penalty
from .sampling import Draws, Everything, Sampling
from .tasks.base import Task
from .tasks.bump import BumpTask
from .tasks.table import TableTask
from .training import Trained, Training, train

__all__ = [
    "CNN",
    "MLP",
    "BadInput",
    "Box",
    "Bump",
    "BumpTask",
    "Circle",
    "Complement",
    "ComposcopeError",
    "Corner",
    "Cross",
    "Decoder",
    "Draws",
    "Encoding",
    "Everything",
    "Factor",
    "Holdout",
    "Intersection",
    "Interval",
    "NotComposition",
    "Nothing",
    "OneHot",
    "Penalty",
    "PerFactor",
    "Positional",
    "Rate",
    "Result",
    "RunFailed",
    "Sampling",
    "Spec",
    "Split",
    "Square",
    "Store",
    "Sweep",
    "TableTask",
    "Task",
    "Thermometer",
    "Trained",
    "Training",
    "Union",
    "__version__",
    "register",
    "run",
    "run_all",
    "split",
    "train",
]

__version__: str
