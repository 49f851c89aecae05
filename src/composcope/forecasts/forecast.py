"""A forecast: two regressions from codes to images, judged on held-out combinations like a decoder."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis import Diagnosis, diagnose
from composcope.diagnosis.points import grid_split
from composcope.errors import BadInput
from composcope.factors import Latents
from composcope.forecasts.domain import GAUSSIAN, LOGLINEAR, method_for, reasons_to_abstain
from composcope.forecasts.gaussian import fit_gaussian, gaussian_kernel
from composcope.forecasts.loglinear import OnProgress, fit_loglinear, predict_loglinear
from composcope.forecasts.samples import Samples, fit_score, training_samples
from composcope.runs.machine import using_threads
from composcope.runs.spec import Spec
from composcope.tasks.base import Images
from composcope.verdict import Verdict
from composcope.verdict.judgement import kind_of

if TYPE_CHECKING:
    from composcope.diagnosis.drawing import Axes

Predict = Callable[[Float[Tensor, "n code"]], Float[Tensor, "n pixels"]]


@dataclass(frozen=True)
class Prediction:
    """One regression's images on the grid, judged.

    - `fit`: R^2 on the training set; `diagnosis`: the verdict and the errors, and some images beside the truth.
    - `draw`: latents -> the images that are forecast, for any combinations.
    """

    method: str
    fit: float
    diagnosis: Diagnosis
    draw: Callable[[Latents], Images] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        assert self.diagnosis.verdict is not None  # something is held out, or there is no forecast
        return self.diagnosis.verdict

    @property
    def kind(self) -> str:
        """What most held-out images do, as in a verdict.

        A verdict has a control on seen images, and a regression need not fit those that are seen but not trained on.
        Whether it has learned what it was shown is told by `fit` instead.
        """
        return kind_of(self.verdict.shares)

    @property
    def score(self) -> float:
        """The share of held-out images that are composed."""
        return self.verdict.shares["composer"]

    @property
    def accuracy(self) -> float | None:
        """The share of held-out images in their place, None for a task without positions."""
        return self.diagnosis.error.accuracy


@dataclass(frozen=True)
class Forecast:
    """What a decoder will draw on held-out combinations.

    - `predictions`: by method, "log-linear" and "Gaussian kernel"; `method`: the one that resembles the decoder.
    - `abstains`: reasons why neither is known to hold for this spec; empty if the forecast is meant.
    - `latents`: the held-out combinations, in grid order.
    """

    spec: Spec
    method: str
    predictions: dict[str, Prediction]
    abstains: tuple[str, ...]
    latents: Float[Tensor, "heldout factors"]

    @property
    def prediction(self) -> Prediction:
        """That of the method for this decoder, whether or not the forecast abstains."""
        return self.predictions[self.method]

    @property
    def kind(self) -> str | None:
        """What it will do, as in a verdict ("composes", "superposes", ...); None if the forecast abstains."""
        return None if self.abstains else self.prediction.kind

    @property
    def composes(self) -> bool | None:
        """Whether most held-out images will be composed; None if the forecast abstains."""
        return None if self.abstains else self.prediction.kind == "composes"

    @property
    def score(self) -> float | None:
        """The share of held-out images that will be composed; None if the forecast abstains."""
        return None if self.abstains else self.prediction.score

    @property
    def accuracy(self) -> float | None:
        """The share of held-out images that will be in their place; None if the forecast abstains."""
        return None if self.abstains else self.prediction.accuracy

    @property
    def r2(self) -> float:
        """How well the regression fits the training images."""
        return self.prediction.fit

    @property
    def images(self) -> Images:
        """What will be drawn at `latents`."""
        return self.prediction.draw(self.latents)

    def numbers(self) -> dict[str, Any]:
        """Every number and word of the forecast: plain data, ready for JSON."""
        from composcope.forecasts.wording import numbers

        return numbers(self)

    def __str__(self) -> str:
        from composcope.forecasts.wording import summary

        return summary(self)

    def __repr__(self) -> str:
        what = "abstains" if self.abstains else repr(self.kind)
        return f"Forecast({what}, {self.method}, R2 {self.r2:.2f})"

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Some held-out images: the truth, and both forecasts. Returns the matplotlib axes."""
        from composcope.forecasts.drawing import draw_forecast

        return draw_forecast(self, ax)

    def _repr_html_(self) -> str:
        from composcope.forecasts.display import forecast_html

        return forecast_html(self)


def forecast(spec: Spec, on_progress: OnProgress = lambda done, total: None) -> Forecast:
    """What a run of this spec will draw on held-out combinations, without training it.

    Two regressions are fitted to what the run would be trained on: the logarithm of every pixel is linear in the code
    (which resembles a CNN), or images are a Gaussian kernel's (which resembles an MLP). Their images are judged as a
    decoder's are. Where neither is known to hold, the forecast abstains and says why.

    - `on_progress`: called with the steps done and their number.

    >>> import composcope as cs
    >>> spec = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.OneHot(), cs.CNN(), cs.Stripes(bumps=20))
    >>> forecast(spec)
    Forecast('composes', log-linear, R2 0.93)
    """
    heldout = _checked_heldout(spec)
    # Many small products: with several threads they are slower, many times so on a busy machine.
    with using_threads(1):
        predictions = _predictions(spec, training_samples(spec), on_progress)
    method = method_for(spec)
    return Forecast(spec, method, predictions, reasons_to_abstain(spec, predictions[method].fit), heldout)


def _predictions(spec: Spec, samples: Samples, on_progress: OnProgress) -> dict[str, Prediction]:
    """Both regressions, fitted and judged."""
    pixels = samples.foregrounds.shape[1]
    judging = max(1, pixels // 2)  # each verdict takes about half as long as the fit
    total = pixels + 2 * judging
    weights = fit_loglinear(
        samples.codes, samples.foregrounds, samples.counts, on_progress=lambda done, _: on_progress(done, total)
    )
    coefficients = fit_gaussian(samples.codes, samples.foregrounds, samples.counts)
    methods: dict[str, Predict] = {
        LOGLINEAR: lambda codes: predict_loglinear(weights, codes),
        GAUSSIAN: lambda codes: gaussian_kernel(codes, samples.codes) @ coefficients,
    }
    predictions: dict[str, Prediction] = {}
    for name, predict in methods.items():
        predictions[name] = _judged(spec, samples, name, predict)
        on_progress(pixels + len(predictions) * judging, total)
    return predictions


def _checked_heldout(spec: Spec) -> Latents:
    """The held-out combinations in grid order; BadInput if there are none."""
    heldout = grid_split(spec.task, spec.holdout).heldout
    if not len(heldout):
        raise BadInput(f"{spec.holdout} holds out no combination, so there is nothing to forecast; use Square, say")
    return heldout


def _judged(spec: Spec, samples: Samples, method: str, predict: Predict) -> Prediction:
    task, factors = spec.task, spec.task.factors

    def images(codes: Float[Tensor, "n code"]) -> Images:
        foreground = predict(codes.double() / samples.scale).float().unflatten(1, task.image_shape)
        background = torch.as_tensor(task.background, dtype=torch.float32)
        return background - foreground if task.dark else background + foreground

    diagnosis = diagnose(images, task, spec.holdout, spec.encoding, seed=spec.seed, only="verdict")
    return Prediction(
        method,
        fit_score(predict(samples.codes), samples),
        diagnosis,
        lambda latents: images(spec.encoding.encode(latents, factors)),
    )
