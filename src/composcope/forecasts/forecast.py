"""A forecast: two regressions from codes to images, classified on held-out combinations like a decoder."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.decoders.cnn import CNN
from composcope.decoders.mlp import MLP
from composcope.diagnosis import Diagnosis, diagnose
from composcope.diagnosis.points import grid_split
from composcope.encodings import Encoding, PerFactor, Rate
from composcope.errors import BadInput, CannotStore
from composcope.factors import Latents
from composcope.forecasts.regressions import (
    OnProgress,
    Samples,
    fit_gaussian,
    fit_loglinear,
    fit_score,
    gaussian_kernel,
    predict_loglinear,
    training_samples,
)
from composcope.runs.machine import using_threads
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.tasks.base import Images
from composcope.verdict import Verdict
from composcope.verdict.verdict import kind_of

if TYPE_CHECKING:
    from composcope.diagnosis.drawing import Axes

LOGLINEAR, GAUSSIAN = "log-linear", "Gaussian kernel"
# A regression that does not fit what is shown says nothing about what is held out.
MIN_FIT = 0.8
BLIND = (
    "polarity (dark or bright images)",
    "the length of training and the learning rate",
    "the width of the network and its depth beyond one layer",
    "the seed's weights and batches",
    "how bright an object is: an exponential overshoots",
)
"""What no forecast can see, since it knows codes and foregrounds alone."""


def method_for(spec: Spec) -> str:
    """The regression that resembles the spec's decoder the most."""
    return GAUSSIAN if type(spec.decoder) is MLP else LOGLINEAR


def reasons_to_abstain(spec: Spec, fit: float) -> tuple[str, ...]:
    """Why nothing is forecast, one sentence per reason; none if the spec is within the domain.

    - `fit`: R^2 on the training set of the regression that is used.
    """
    reasons = [*_of_decoder(spec)]
    rates = _rate_coded(spec.encoding, [factor.name for factor in spec.task.factors])
    if rates:
        reasons.append(
            f"rate codes ({', '.join(rates)}): networks interpolate between their values, regressions do not"
        )
    if spec.penalties:
        names = ", ".join(type(penalty).__name__ for penalty in spec.penalties)
        reasons.append(f"the loss has a penalty ({names}), which the regression does not know")
    if not fit >= MIN_FIT:
        reasons.append(f"the regression does not fit the training images: R2 {fit:.2f}, at least {MIN_FIT} is needed")
    return tuple(reasons)


def _of_decoder(spec: Spec) -> list[str]:
    decoder = spec.decoder
    # A subclass may do anything, so it is not taken for its base.
    if type(decoder) is MLP:
        return []
    if type(decoder) is not CNN:
        return [f"the decoder is {type(decoder).__name__}; forecasts are known to hold for CNN and MLP only"]
    reasons = []
    if decoder.batch_norm:
        reasons.append("the CNN has batch normalisation, with which it draws other things")
    if decoder.depth == 1:
        reasons.append("the CNN has depth 1, too little to multiply what its factors say")
    if decoder.output == "sigmoid":
        reasons.append("the CNN ends in a sigmoid, which was never compared")
    return reasons


def _rate_coded(encoding: Encoding, factors: list[str]) -> list[str]:
    """Names of the factors whose code is their value itself."""
    if isinstance(encoding, PerFactor):
        return [name for name in factors if isinstance(encoding.encodings.get(name), Rate)]
    return factors if isinstance(encoding, Rate) else []


Predict = Callable[[Float[Tensor, "n code"]], Float[Tensor, "n pixels"]]


@dataclass(frozen=True)
class Prediction:
    """One regression's images on the grid, classified.

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
        from composcope.forecasts.summary import numbers

        return numbers(self)

    def __str__(self) -> str:
        from composcope.forecasts.summary import summary

        return summary(self)

    def __repr__(self) -> str:
        what = "abstains" if self.abstains else repr(self.kind)
        return f"Forecast({what}, {self.method}, R2 {self.r2:.2f})"

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Some held-out images: the truth, and both forecasts. Returns the matplotlib axes."""
        from composcope.diagnosis.drawing import draw_images

        samples = self.prediction.diagnosis.samples
        assert samples is not None  # every diagnosis of a split has them
        rows = {"true": samples.truth}
        for name, prediction in self.predictions.items():
            used = name == self.method and not self.abstains
            rows[f"{name} (used)" if used else name] = prediction.draw(samples.latents)
        title = "the forecast abstains" if self.abstains else f"forecast: {self.kind}"
        return draw_images(rows, samples.latents, title, ax)

    def _repr_html_(self) -> str:
        from composcope.forecasts.summary import forecast_html

        return forecast_html(self)


def forecast(spec: Spec, on_progress: OnProgress = lambda done, total: None) -> Forecast:
    """What a run of this spec will draw on held-out combinations, without training it.

    Two regressions are fitted to what the run would be trained on: the logarithm of every pixel is linear in the code
    (which resembles a CNN), or images are a Gaussian kernel's (which resembles an MLP). Their images are classified as
    a decoder's are. Where neither is known to hold, the forecast abstains and says why.

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
    """Both regressions, fitted and classified."""
    pixels = samples.foregrounds.shape[1]
    verdict_steps = max(1, pixels // 2)  # each verdict takes about half as long as the fit
    total = pixels + 2 * verdict_steps
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
        predictions[name] = _predicted(spec, samples, name, predict)
        on_progress(pixels + len(predictions) * verdict_steps, total)
    return predictions


def _checked_heldout(spec: Spec) -> Latents:
    """The held-out combinations in grid order; BadInput if there are none."""
    heldout = grid_split(spec.task, spec.holdout).heldout
    if not len(heldout):
        raise BadInput(f"{spec.holdout} holds out no combination, so there is nothing to forecast; use Square, say")
    return heldout


def _predicted(spec: Spec, samples: Samples, method: str, predict: Predict) -> Prediction:
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


NAME = "forecast"
# Raised when the same spec would be forecast otherwise; older numbers are then not shown.
FORECAST_VERSION = 1


def forecast_run(store: Store, run_id: str, on_progress: OnProgress = lambda done, total: None) -> Forecast:
    """Forecast a stored run from its spec, without its weights, and store the numbers with it if it can be written."""
    folder = store.run_folder(run_id)
    made = forecast(folder.spec(), on_progress)
    with suppress(CannotStore) if folder.read_only else nullcontext():
        folder.save_measures(NAME, FORECAST_VERSION, made.numbers())
    return made


def stored_forecast(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """The numbers that were stored with a run, None if there are none of this version."""
    return store.run_folder(run_id).measures({NAME: FORECAST_VERSION}).get(NAME)
