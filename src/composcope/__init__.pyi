from .components import register
from .decoders.base import Decoder
from .decoders.cnn import CNN, DigitCNN
from .decoders.flow_matching import FlowMatching
from .decoders.image_encoder import Autoencoder, ImageEncoder
from .decoders.lowrank import LowRank
from .decoders.mlp import MLP
from .decoders.per_factor import Additive, Product
from .decoders.spatial_broadcast import SpatialBroadcast
from .decoders.tokens import Pixelwise, Transformer
from .diagnosis import Diagnosis, diagnose, load_diagnosis, save_diagnosis
from .diagnosis.pipelines import from_pipeline
from .encodings import Bump, Circle, Encoding, OneHot, PerFactor, Positional, Rate, Thermometer
from .errors import BadInput, ComposcopeError, RunFailed
from .factors import Factor
from .forecasts import Forecast, forecast
from .holdouts import (
    Box,
    Cells,
    Combinations,
    Complement,
    Corner,
    Cross,
    Holdout,
    Intersection,
    Interval,
    Nothing,
    Orthotope,
    Pairs,
    Split,
    Square,
    Union,
    as_holdout,
    split,
)
from .monitor import Moment, Monitor
from .pages.comparison import Comparison, compare
from .pages.diagnosis_page import write_diagnosis_page
from .penalties.base import Batch, Penalty, TrainingData
from .penalties.consistency import Consistency
from .penalties.embeddings import Entropy, Variance
from .penalties.interaction import Interaction
from .readers import Readers, train_readers
from .runs.pipeline import run
from .runs.run import Run
from .runs.spec import LeakedImages, NotComposition, Spec
from .runs.sweep import Sweep
from .sampling import Draws, Everything, Sampling, Stripes
from .store.store import Store
from .study.claim import Claim, Part, difference, of_runs
from .study.evidence import Evidence
from .study.ledger import Ledger
from .study.panel import Panel
from .study.plan import Preset
from .study.reproduce import Reproduction, reproduce
from .study.study import Headline, RunClass, Study, register_study, studies
from .tasks.base import Task
from .tasks.bump import BumpTask
from .tasks.examples import Examples
from .tasks.public import MPI3D, DSprites, Shapes3D
from .tasks.rotation import RotationTask
from .tasks.sprites import SpriteTask
from .tasks.table import TableTask
from .training import Trained, Training, train
from .workers.executor import run_all
from .workers.limits import Resources

__all__ = [
    "CNN",
    "MLP",
    "MPI3D",
    "Additive",
    "Autoencoder",
    "BadInput",
    "Batch",
    "Box",
    "Bump",
    "BumpTask",
    "Cells",
    "Circle",
    "Claim",
    "Combinations",
    "Comparison",
    "Complement",
    "ComposcopeError",
    "Consistency",
    "Corner",
    "Cross",
    "DSprites",
    "Decoder",
    "Diagnosis",
    "DigitCNN",
    "Draws",
    "Encoding",
    "Entropy",
    "Everything",
    "Evidence",
    "Examples",
    "Factor",
    "FlowMatching",
    "Forecast",
    "Headline",
    "Holdout",
    "ImageEncoder",
    "Interaction",
    "Intersection",
    "Interval",
    "LeakedImages",
    "Ledger",
    "LowRank",
    "Moment",
    "Monitor",
    "NotComposition",
    "Nothing",
    "OneHot",
    "Orthotope",
    "Pairs",
    "Panel",
    "Part",
    "Penalty",
    "PerFactor",
    "Pixelwise",
    "Positional",
    "Preset",
    "Product",
    "Rate",
    "Readers",
    "Reproduction",
    "Resources",
    "RotationTask",
    "Run",
    "RunClass",
    "RunFailed",
    "Sampling",
    "Shapes3D",
    "SpatialBroadcast",
    "Spec",
    "Split",
    "SpriteTask",
    "Square",
    "Store",
    "Stripes",
    "Study",
    "Sweep",
    "TableTask",
    "Task",
    "Thermometer",
    "Trained",
    "Training",
    "TrainingData",
    "Transformer",
    "Union",
    "Variance",
    "__version__",
    "as_holdout",
    "compare",
    "diagnose",
    "difference",
    "forecast",
    "from_pipeline",
    "load_diagnosis",
    "of_runs",
    "register",
    "register_study",
    "reproduce",
    "run",
    "run_all",
    "save_diagnosis",
    "split",
    "studies",
    "train",
    "train_readers",
    "write_diagnosis_page",
]

__version__: str
