"""Pipelines in the manner of the `diffusers` package, as generators that can be diagnosed."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composcope.errors import BadInput
from composcope.tasks.base import Images


def from_pipeline(pipeline: Callable[..., Any], **settings: Any) -> Callable[[Any], Images]:
    """The pipeline as a generator for `diagnose`: conditions -> images (n, channels, height, width) in 0..1.

    - `pipeline`: called with the conditions as keywords, a `torch.Generator` as `generator`, `output_type="np"`, and
      the settings; it returns images, or an object with them as `images`. That is the protocol of `diffusers`.
    - `settings`: such as `num_inference_steps=20`, `guidance_scale=4.0`; also `generator=None` or `output_type="pil"`
      for a pipeline that takes none or another.

    The encoding returns the keywords as a dict, or a list of texts, which becomes `prompt`:

        prompts = lambda latents: [f"a {row['tint']} {row['digit']}" for row in examples.names(latents)]
        cs.diagnose(cs.from_pipeline(pipeline), task=examples, holdout=..., encoding=prompts)
    """
    quiet = getattr(pipeline, "set_progress_bar_config", None)
    if quiet is not None:
        quiet(disable=True)

    def generate(conditions: Any) -> Images:
        keywords = dict(conditions) if isinstance(conditions, Mapping) else {"prompt": conditions}
        # Its seed comes from the random state, which a diagnosis sets: the same images every time.
        rng = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        options = {"generator": rng, "output_type": "np", **settings}
        if options["generator"] is None:
            del options["generator"]
        made = pipeline(**keywords, **options)
        return _images(getattr(made, "images", made[0] if isinstance(made, tuple) else made))

    return generate


def _images(made: Any) -> Images:
    """Arrays (n, height, width, channels), tensors (n, channels, height, width) or a list of PIL images, as tensors."""
    if isinstance(made, list):
        arrays = [np.asarray(image) for image in made]
        made = np.stack([array / 255 if array.dtype == np.uint8 else array for array in arrays])
    if isinstance(made, Tensor):
        return made.float()
    if not isinstance(made, np.ndarray) or made.ndim not in (3, 4):
        raise BadInput(
            f"the pipeline returns {type(made).__name__}; images are needed, as arrays, tensors or PIL images"
        )
    pixels = torch.from_numpy(np.ascontiguousarray(made)).float()
    return pixels[:, None] if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2)
