"""Where a forecast can be trusted, and where it abstains: found by comparing it with trained networks."""

from composcope.decoders.cnn import CNN
from composcope.decoders.mlp import MLP
from composcope.encodings import Encoding, PerFactor, Rate
from composcope.runs.spec import Spec

LOGLINEAR, GAUSSIAN = "log-linear", "Gaussian kernel"
# A regression that does not fit what is shown says nothing about what is withheld.
LEAST_FIT = 0.8
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
    if not fit >= LEAST_FIT:
        reasons.append(f"the regression does not fit the training images: R2 {fit:.2f}, at least {LEAST_FIT} is needed")
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
