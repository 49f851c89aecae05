"""The run that most tests train: complete, and done in milliseconds."""

from dataclasses import replace

import composcope as cs


def tiny(**changes) -> cs.Spec:
    """48 seen images of 8 x 8, three steps per epoch, two epochs."""
    spec = cs.Spec(
        task=cs.BumpTask(8),
        holdout=cs.Square(2, 5),
        encoding=cs.Bump(),
        decoder=cs.MLP(depth=1, width=8),
        sampling=cs.Everything(),
        training=cs.Training(steps=6, batch=16),
    )
    return replace(spec, **changes)


def line() -> cs.Spec:
    """A run of one factor, an angle."""
    return tiny(
        task=cs.RotationTask(angles=18),
        holdout=cs.Interval("angle", 150, 210),
        encoding=cs.Circle(),
        decoder=cs.MLP(depth=1, width=4),
        training=cs.Training(steps=2, batch=8),
    )
