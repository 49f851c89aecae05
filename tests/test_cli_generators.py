"""`composcope diagnose --examples`: from image files to a page."""

import json

import pandas as pd
import pytest
import torch
from PIL import Image

from composcope.readers import networks

CODE = """
import torch

def render(rows):
    images = torch.full((len(rows), 1, 8, 8), 0.1) + 0.05 * torch.rand(len(rows), 1, 8, 8)
    for number, (side, high) in enumerate(rows.tolist()):
        images[number, 0, 1 + 4 * int(high) : 3 + 4 * int(high), 1 + 4 * int(side) : 3 + 4 * int(side)] = 0.9
    return images

def sampler(rows):
    rows = rows.clone()
    rows[:, 0] *= 1 - rows[:, 1]  # never to the right and high
    return render(rows)

def make():
    return sampler, lambda latents: latents

def reader():
    def read(images):
        side = (images[:, 0, :, 5:7].amax((1, 2)) > 0.5).long()
        high = (images[:, 0, 5:7].amax((1, 2)) > 0.5).long()
        return {"side": side, "height": high}
    return read
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Images of three of the four combinations, labels, a generator and a reader."""
    monkeypatch.setattr(networks, "MAX_STEPS", 120)
    made = {}
    exec(CODE, made)
    rows = torch.tensor([[0, 0], [1, 0], [0, 1]]).repeat_interleave(20, 0)
    for number, image in enumerate(made["render"](rows)):
        Image.fromarray((255 * image[0]).byte().numpy()).save(tmp_path / f"{number}.png")
    files = [f"{number}.png" for number in range(len(rows))]
    labels = {"file": files, "side": rows[:, 0].tolist(), "height": ["high" if high else "low" for high in rows[:, 1]]}
    pd.DataFrame(labels).to_csv(tmp_path / "labels.csv", index=False)
    (tmp_path / "own.py").write_text(CODE)
    return tmp_path


def test_a_generator_is_diagnosed_with_examples(folder, composcope):
    command = ["diagnose", f"{folder / 'own.py'}:make", "--examples", folder, "--holdout", "side=1 height=high"]
    done = composcope(
        *command, "--reader", f"{folder / 'own.py'}:reader", "--n-samples", 32, "--out", folder / "out", "--json"
    )
    assert done.code == 0, done.err
    verdict = json.loads(done.out)["verdict"]
    assert verdict["evidence"] == "readers"
    assert verdict["factors"]["side"] < 0.1
    assert verdict["factors"]["height"] > 0.9
    assert "whether the given reader was trained on them is not known" in verdict["reader"]["rests_on"]
    assert "mixes up factors" in (folder / "out" / "diagnosis.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--examples", "."], "--holdout is needed"),
        (["--holdout", "x=1"], "--holdout and --reader belong to --examples"),
        (["--examples", ".", "--holdout", "digit"], "write factor=value,value"),
        (["--examples", ".", "--holdout", "x=1", "--spec", "a.toml"], "with --examples leave them out"),
        (["--examples", "nowhere", "--holdout", "x=1"], "file not found: 'nowhere/labels.csv'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message, folder, composcope, monkeypatch):
    monkeypatch.chdir(folder)
    done = composcope("diagnose", "own.py:make", *options)
    assert done.code == 2
    assert message in done.err
