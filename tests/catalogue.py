"""Every component, one line each; test_laws.py runs over all of them and fails if a component is missing."""

import atexit
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import composcope as cs
from public_files import public_file

EVERY = ("continuous", "circular", "categorical")
ORDERED = ("continuous", "circular")

FACTORS = (
    cs.Factor("x", range(8)),
    cs.Factor("brightness", (0.25, 0.5, 1.0)),
    cs.Factor("only", (3.0,)),
    cs.Factor("angle", range(0, 360, 30), "circular", 360),
    cs.Factor("digit", (0, 1, 4), "categorical"),
)


def table(polarity: str = "bright") -> cs.TableTask:
    """Two-channel 8 x 10 noise images for a circular and a categorical factor, saved to a temporary file."""
    folder = Path(tempfile.mkdtemp(prefix="composcope-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    factors = (cs.Factor("angle", range(0, 360, 90), "circular", 360), cs.Factor("digit", (0, 1, 4), "categorical"))
    latents = torch.cartesian_prod(*(factor.tensor() for factor in factors))
    images = torch.rand(12, 2, 8, 10, generator=torch.Generator().manual_seed(0))
    return cs.TableTask(latents, images, factors, polarity).save(folder / "table.npz")


def public(name: str) -> Path:
    """A small file of the form of a public data set, in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="composcope-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return public_file(name, folder)


@dataclass(frozen=True)
class Coding:
    """An encoding, the kinds of factor that it fits, and whether it can represent an absent factor."""

    encoding: cs.Encoding
    kinds: Sequence[str]
    has_absent: bool

    def fits(self, factor: cs.Factor) -> bool:
        return factor.kind in self.kinds


TASKS = [
    cs.BumpTask(8),
    cs.BumpTask(9, sigma=1.5, polarity="bright"),
    cs.BumpTask(8, continuous=True),
    cs.BumpTask(8, brightness=(0.25, 0.5, 1.0)),
    cs.RotationTask(angles=6),
    cs.RotationTask(digits=(1, 4), angles=6),
    cs.BumpTask(8, brightness=(0.5, 1.0), absent="mean"),
    cs.RotationTask(digits=(1, 4), angles=6, side=14, absent="max"),
    cs.SpriteTask(16, x=(4, 6, 8, 10), y=(5, 7, 9), shapes=("square", "disc", "heart"), scales=(3,)),
    cs.SpriteTask(
        16,
        shapes=("triangle", "dome"),
        scales=(3, 5),
        rotations=(0, 45, 90),
        colours=("red", "blue"),
        polarity="bright",
        absent="mean",
    ),
    table(),
    table("dark"),
    replace(table(), absent="max"),
    cs.DSprites(str(public("dsprites.npz")), {"scale": [0.5]}, absent="mean"),
    cs.Shapes3D(str(public("3dshapes.h5"))),
    cs.MPI3D(
        str(public("mpi3d.npz")),
        {"object_color": [0], "object_size": [0], "horizontal_axis": [0, 39], "vertical_axis": [0, 20]},
    ),
]

# All of these fit an 8 x 8 bump task.
HOLDOUTS = [
    cs.Nothing(),
    cs.Square(2, 5),
    cs.Corner(5),
    cs.Corner(2, "lower left"),
    cs.Corner(3, "upper left"),
    cs.Corner(4, "lower right"),
    cs.Cross(3, 4),
    cs.Interval("x", 2, 5),
    cs.Interval("y", 2, 5, closed="neither"),
    cs.Box({"x": (2, 5), "y": (0, 4)}),
    cs.Square(0, 2) | cs.Corner(5),
    cs.Square(0, 4) & cs.Interval("y", 1, 6, closed="left"),
    ~cs.Square(1, 6),
    cs.Combinations([(3, 3), (4, 2)]),
    cs.Orthotope([{"x": "2..5", "y": [0, 1]}, {"y": 7, "x": 3}]),
    cs.Pairs({"x": "2..4", "y": [1, 6]}),
    cs.Cells(0.3, seed=5),
]

CODINGS = [
    Coding(cs.OneHot(), EVERY, has_absent=True),
    Coding(cs.OneHot(absent="mean"), EVERY, has_absent=True),
    Coding(cs.Bump(), ORDERED, has_absent=True),
    Coding(cs.Bump(width=2.0, absent="mean"), ORDERED, has_absent=True),
    Coding(cs.Positional(), ORDERED, has_absent=True),
    Coding(cs.Positional(pairs=3, base=100.0, absent="mean"), ORDERED, has_absent=True),
    Coding(cs.Rate(), ORDERED, has_absent=False),
    Coding(cs.Rate("unit"), ORDERED, has_absent=False),
    Coding(cs.Rate("centred"), ORDERED, has_absent=False),
    Coding(cs.Thermometer(), ("continuous",), has_absent=False),
    Coding(cs.Circle(), ("circular",), has_absent=False),
    Coding(cs.PerFactor({factor.name: cs.OneHot() for factor in FACTORS}), EVERY, has_absent=True),
    Coding(cs.PerFactor({factor.name: cs.Rate() for factor in FACTORS}), ORDERED, has_absent=False),
]

DECODERS = [
    cs.CNN(depth=1, width=4),
    cs.CNN(depth=2, width=4),
    cs.CNN(depth=4, width=4, batch_norm=True, output="sigmoid"),
    cs.DigitCNN(width=4),
    cs.MLP(depth=1, width=8),
    cs.MLP(depth=3, width=8),
    cs.LowRank(rank=2, depth=1),
    cs.LowRank(channels=3),
    cs.Pixelwise(depth=2, width=8),
    cs.Transformer(depth=1, width=8, heads=2),
    cs.SpatialBroadcast(depth=2, width=8),
    cs.Additive(cs.MLP(depth=1, width=8)),
    cs.Product(cs.MLP(depth=1, width=8)),
    cs.Product(cs.CNN(depth=1, width=4), polarity="bright"),
    cs.FlowMatching(width=4, steps=3),
    cs.FlowMatching(width=4, steps=3, coordinates=True, noise=7),
    cs.ImageEncoder(width=4),
    cs.Autoencoder(cs.MLP(depth=1, width=8), width=4),
]

# All of these fit an 8 x 8 bump task with a square held out.
SAMPLINGS = [
    cs.Draws(30),
    cs.Everything(),
    cs.Stripes(),
    cs.Stripes(stripes=5, bumps=7),
    cs.Stripes(fraction=0.5),
    cs.Stripes(subsets="all but one"),
    cs.Stripes(stripes=9, bumps=4, subsets="all proper subsets"),
]

PENALTIES = [cs.Entropy(0.2), cs.Variance(), cs.Consistency(0.02), cs.Interaction(points=3)]

ROLES = {
    cs.Task: TASKS,
    cs.Holdout: HOLDOUTS,
    cs.Encoding: [coding.encoding for coding in CODINGS],
    cs.Decoder: DECODERS,
    cs.Sampling: SAMPLINGS,
    cs.Penalty: PENALTIES,
}
COMPONENTS = [component for components in ROLES.values() for component in components]


def label(value: object) -> str:
    """A test's name for a component: its role and kind."""
    if isinstance(value, Coding):
        value = value.encoding
    if isinstance(value, cs.TableTask):
        return f"table-{value.polarity}-{value.absent}"
    if not hasattr(value, "kind"):
        return str(value)
    return re.sub("'[^']*/", "'", repr(value)).replace(" ", "")[:60]  # without the folders of temporary files
