"""Pipelines in the manner of diffusers, as generators."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import composcope as cs


class Pipeline:
    """The protocol: keywords, a generator, an output type; an object with images."""

    def __init__(self):
        self.calls, self.quiet = [], False

    def set_progress_bar_config(self, disable):
        self.quiet = disable

    def __call__(self, prompt=None, class_labels=None, generator=None, output_type="pil", num_inference_steps=50):
        conditions = prompt if class_labels is None else class_labels
        self.calls.append((conditions, output_type, num_inference_steps))
        return SimpleNamespace(images=torch.rand(len(conditions), 6, 8, 3, generator=generator).numpy())


def test_conditions_are_keywords_and_texts_are_prompts():
    pipeline = Pipeline()
    generate = cs.from_pipeline(pipeline, num_inference_steps=3)
    images = generate(["a red 4", "a blue 7"])
    assert images.shape == (2, 3, 6, 8)
    assert generate({"class_labels": [1]}).shape == (1, 3, 6, 8)
    assert pipeline.calls == [(["a red 4", "a blue 7"], "np", 3), ([1], "np", 3)]
    assert pipeline.quiet


def test_the_random_state_decides_what_is_drawn():
    generate = cs.from_pipeline(Pipeline())
    torch.manual_seed(3)
    first, second = generate(["a"]), generate(["a"])
    torch.manual_seed(3)
    assert torch.equal(generate(["a"]), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("kind", ["pil", "tuple", "tensor"])
def test_images_in_other_forms(kind):
    made = {
        "pil": SimpleNamespace(images=[Image.new("RGB", (8, 6), (255, 0, 0))]),
        "tuple": (np.tile(np.array([1.0, 0, 0]), (1, 6, 8, 1)),),
        "tensor": SimpleNamespace(images=torch.tensor([1.0, 0, 0])[None, :, None, None].expand(1, 3, 6, 8)),
    }[kind]
    images = cs.from_pipeline(lambda prompt, **settings: made, generator=None)(["red"])
    assert images.shape == (1, 3, 6, 8)
    assert images[0, :, 0, 0].tolist() == [1, 0, 0]


def test_what_is_no_image_is_refused():
    with pytest.raises(cs.BadInput, match="the pipeline returns str"):
        cs.from_pipeline(lambda prompt, **settings: "a picture")(["red"])


@pytest.mark.slow
def test_a_pipeline_of_the_diffusers_package_is_diagnosed():
    """An untrained one: it has learned nothing, and nothing must break."""
    pytest.importorskip("diffusers")
    from diffusers import DDIMScheduler, DiffusionPipeline, UNet2DModel
    from diffusers.pipelines.pipeline_utils import ImagePipelineOutput

    class ClassConditional(DiffusionPipeline):
        def __init__(self, unet, scheduler):
            super().__init__()
            self.register_modules(unet=unet, scheduler=scheduler)

        @torch.no_grad()
        def __call__(self, class_labels, generator=None, num_inference_steps=4, output_type="pil"):
            images = torch.randn(len(class_labels), 1, 8, 8, generator=generator)
            self.scheduler.set_timesteps(num_inference_steps)
            for step in self.progress_bar(self.scheduler.timesteps):
                noise = self.unet(images, step, class_labels=torch.tensor(class_labels)).sample
                images = self.scheduler.step(noise, step, images, generator=generator).prev_sample
            pixels = (images / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1).numpy()
            return ImagePipelineOutput(images=pixels if output_type == "np" else self.numpy_to_pil(pixels))

    unet = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(8, 8),
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
        num_class_embeds=4,
    )
    pipeline = ClassConditional(unet, DDIMScheduler(num_train_timesteps=50))
    rows = torch.cartesian_prod(torch.arange(2), torch.arange(2)).repeat_interleave(15, 0)
    images = torch.zeros(60, 1, 8, 8) + 0.05 * torch.rand(60, 1, 8, 8)
    for number, (side, height) in enumerate(rows.tolist()):
        images[number, 0, 1 + 4 * height : 3 + 4 * height, 1 + 4 * side : 3 + 4 * side] = 1
    task = cs.Examples.from_columns({"side": rows[:, 0].tolist(), "height": rows[:, 1].tolist()}, images)

    def labels(latents):
        return {"class_labels": (2 * latents[:, 0] + latents[:, 1]).long().tolist()}

    diagnosis = cs.diagnose(
        cs.from_pipeline(pipeline, num_inference_steps=2),
        task,
        cs.Orthotope([{"side": 1, "height": 1}]),
        labels,
        n_samples=4,
    )
    assert diagnosis.verdict.kind == "has not learned"
