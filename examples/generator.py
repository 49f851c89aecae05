"""A generator of images with style, diagnosed, cured by data, and diagnosed again.

    python examples/generator.py

Handwritten digits in five tints at three places, every image with a slant, stroke, height and background of its own:
no combination has one true image. A conditional flow-matching model learns them, but for two digits at one place.
The tutorial docs/tutorials/generators.md shows what happens.
"""

import sys
import time
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample

import composcope as cs
from composcope.tasks.rotation import digits

DIGITS = (0, 1, 2, 3, 4, 7)
TINTS = {
    "red": (1.0, 0.25, 0.2),
    "green": (0.2, 0.9, 0.3),
    "blue": (0.3, 0.35, 1.0),
    "yellow": (1.0, 0.9, 0.2),
    "white": (1.0, 1.0, 1.0),
}
PLACES = (0, 4, 8)
EACH = 20  # images per combination


def draw(digit: Tensor, tint: Tensor, place: Tensor, rng: torch.Generator) -> Tensor:
    """Images (n, 3, 16, 24) of these combinations, each in a style of its own."""
    count = len(digit)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=rng)

    shapes = digits()[list(DIGITS)][digit][:, None]
    angle, slant, size = uniform(-0.2, 0.2), uniform(-0.2, 0.2), uniform(0.9, 1.15)
    first = torch.stack([angle.cos() * size, slant - angle.sin(), torch.zeros(count)], 1)
    second = torch.stack([angle.sin(), angle.cos() * size, torch.zeros(count)], 1)
    grid = affine_grid(torch.stack([first, second], 1), [count, 1, 28, 28], align_corners=False)
    strokes = avg_pool2d(grid_sample(shapes, grid, align_corners=False), 2) ** uniform(0.6, 1.3)[:, None, None, None]
    canvas = torch.zeros(count, 1, 16, 24)
    height = torch.randint(3, (count,), generator=rng).tolist()
    for row, (above, left) in enumerate(zip(height, place.tolist(), strict=True)):
        canvas[row, :, above : above + 14, PLACES[left] : PLACES[left] + 14] = strokes[row].clamp(0, 1)
    colours = torch.tensor(list(TINTS.values()))[tint] * uniform(0.75, 1.0)[:, None]
    background = uniform(0.0, 0.25)[:, None, None, None]
    return background + canvas * (colours[..., None, None] - background)


def examples() -> cs.Examples:
    """Real images of all combinations, also of those that the generator does not see."""
    sizes = (len(DIGITS), len(TINTS), len(PLACES))
    rows = torch.cartesian_prod(*map(torch.arange, sizes)).repeat_interleave(EACH, 0)
    columns = {
        "digit": [DIGITS[row] for row in rows[:, 0]],
        "tint": [list(TINTS)[row] for row in rows[:, 1]],
        "x": [PLACES[row] for row in rows[:, 2]],
    }
    return cs.Examples.from_columns(columns, draw(*rows.unbind(1), torch.Generator().manual_seed(0)))


class Generator(nn.Module):
    """A flow-matching model that draws from new noise every time."""

    def __init__(self, module: nn.Sequential) -> None:
        super().__init__()
        self.module = module

    def forward(self, codes: Tensor) -> Tensor:
        maps, sampler = self.module.maps(codes), self.module.image
        images = torch.randn(len(codes), *sampler.noise.shape[1:])
        for step in range(sampler.steps):
            clean = sampler.unet(images, images.new_full((len(codes),), step / sampler.steps), maps)
            images = images + (clean - images) / (sampler.steps - step)
        return images


def trained(task: cs.Examples, holdout: cs.Holdout, steps: int) -> Generator:
    """A generator of everything that is not held out."""
    seen = ~holdout.contains(task.latents, task.factors)
    codes = cs.OneHot().encode(task.latents[seen], task.factors)
    model = cs.FlowMatching(width=16, steps=20)
    module = model.build([factor.size for factor in task.factors], task.image_shape)
    settings = cs.Training(steps=steps, batch=32, lr=3e-3, schedule="cosine")
    result = cs.train(module, codes, task.images[seen], settings, seed=0, loss=model.loss)
    module.load_state_dict(result.weights)
    return Generator(module)


BEFORE = cs.Orthotope([{"digit": [1, 4], "x": 8}])
# Both digits are shown at that place in three of the five tints. The other two remain to be composed.
AFTER = cs.Orthotope([{"digit": [1, 4], "x": 8, "tint": ["red", "green"]}])


def picture(rows: list[Tensor], file: Path) -> None:
    """One row of images below the other, enlarged."""
    lines = [torch.cat([nn.functional.pad(image, (1, 1, 1, 1), value=1.0) for image in row], 2) for row in rows]
    pixels = (255 * torch.cat(lines, 1).clamp(0, 1)).byte().permute(1, 2, 0).numpy()
    Image.fromarray(pixels).resize((4 * pixels.shape[1], 4 * pixels.shape[0]), Image.Resampling.NEAREST).save(file)


def main(folder: Path, steps: int = 4000) -> None:
    task = examples()
    shown = task.latents[AFTER.contains(task.latents, task.factors)][::5]  # held out before and after
    real = task.images[AFTER.contains(task.latents, task.factors)][::5]
    rows, diagnoses = [real], {}
    for name, holdout in (("before", BEFORE), ("after", AFTER)):
        begin = time.monotonic()
        generator = trained(task, holdout, steps)
        print(f"{name}: trained for {time.monotonic() - begin:.0f} s", flush=True)
        diagnoses[name] = cs.diagnose(generator, task, holdout, cs.OneHot(), n_samples=32)
        print(diagnoses[name].summary(), flush=True)
        diagnoses[name].write_page(folder / f"{name}.html", f"Digits at places, {name}")
        with torch.no_grad():
            rows.append(generator(cs.OneHot().encode(shown, task.factors)))
    picture(rows, folder / "generators.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
