import base64
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

import composcope as cs
from composcope.measures.error import mse
from composcope.pages.explorer import explorer_data, write_explorer
from composcope.pages.runs import title, titles
from composcope.runs.pipeline import run
from tiny import line


def unpacked(data):
    return np.frombuffer(zlib.decompress(base64.b64decode(data["data"])), data["dtype"]).reshape(data["shape"])


def pixels(data):
    return data["low"] + unpacked(data).astype(float) / 254 * (data["high"] - data["low"])


@pytest.fixture
def trained(store):
    """A function that trains a spec and gives the stored run."""

    def train(spec):
        run(spec, store)
        return store[spec.run_id]

    return train


def test_images_and_errors_are_those_of_the_run(trained, tiny_spec):
    one = trained(tiny_spec)
    data = json.loads(json.dumps(explorer_data([one]), allow_nan=False))
    (told,), (task,) = data["runs"], data["tasks"]
    assert data["problems"] == []
    assert task["sizes"] == [8, 8]
    assert pixels(task["truth"]) == pytest.approx(one.truth[:, 0].numpy(), abs=1 / 254)
    step = (told["outputs"]["high"] - told["outputs"]["low"]) / 254
    assert pixels(told["outputs"]) == pytest.approx(one.draw()[:, 0].numpy(), abs=0.51 * step)
    assert unpacked(told["error"]) == pytest.approx(mse(one.draw(), one.truth).numpy())
    assert unpacked(told["heldout"]).reshape(8, 8)[2:6, 2:6].all()
    assert unpacked(told["heldout"]).sum() == 16


def test_the_prediction_is_the_sum_of_what_each_factor_gives_alone(trained, tiny_spec):
    one = trained(tiny_spec)
    told = explorer_data([one])["runs"][0]["prediction"]
    point = 3 * 8 + 5
    x_part, y_part = one.parts_alone([point])
    expected = 1 - (x_part + y_part)[0, 0].numpy()
    shown = [pixels(part["images"])[unpacked(part["rows"])[point]] for part in told["parts"]]
    assert told["base"] + told["sign"] * sum(shown) == pytest.approx(expected, abs=0.02)


def test_nearest_is_the_trained_image_the_fewest_steps_away(trained, tiny_spec):
    told = explorer_data([trained(tiny_spec)])["runs"][0]
    nearest = unpacked(told["nearest"])
    assert nearest[2 * 8 + 4] == 1 * 8 + 4
    assert nearest[7 * 8 + 0] == 7 * 8 + 0
    assert unpacked(told["trained"]).tolist() == (1 - unpacked(told["heldout"])).tolist()


def test_a_training_set_of_stripes_has_no_nearest_image(trained, tiny_spec):
    spec = replace(tiny_spec, sampling=cs.Stripes(bumps=0))
    told = explorer_data([trained(spec)])["runs"][0]
    assert set(unpacked(told["nearest"])) == {-1}
    some = explorer_data([trained(replace(tiny_spec, sampling=cs.Stripes(bumps=5)))])["runs"][0]
    assert unpacked(some["trained"]).sum() == 5


def test_centres_between_grid_points_count_as_all_seen(trained, tiny_spec):
    spec = replace(tiny_spec, task=cs.BumpTask(8, continuous=True), sampling=cs.Draws(30))
    assert unpacked(explorer_data([trained(spec)])["runs"][0]["trained"]).sum() == 48


def test_runs_of_one_task_share_its_truth(trained, tiny_spec):
    bright = replace(tiny_spec, task=cs.BumpTask(8, polarity="bright"))
    data = explorer_data([trained(tiny_spec), trained(replace(tiny_spec, seed=1)), trained(bright)])
    assert [told["task"] for told in data["runs"]] == [0, 0, 1]
    assert len(data["tasks"]) == 2


def test_layers_have_volumes_and_units(trained, tiny_spec):
    one = trained(tiny_spec)
    layers = explorer_data([one])["runs"][0]["layers"]
    assert [layer["name"] for layer in layers] == ["code", "hidden1", "image"]
    found = one.diagnosis.layers["image"]
    assert unpacked(layers[2]["volume"]) == pytest.approx(
        found.geometry.volume.clamp(min=1e-6).log10().numpy(), abs=1e-5
    )
    low, high = layers[2]["tuning"]["ranges"][0]
    first = low + unpacked(layers[2]["tuning"]["maps"])[0].astype(float) / 254 * (high - low)
    assert first == pytest.approx(found.tuning.maps[0].flatten().numpy(), abs=(high - low) / 254)


@pytest.mark.filterwarnings("ignore::composcope.runs.spec.NotComposition")
def test_one_factor_is_a_line_with_a_blend_in_its_gap(trained):
    data = explorer_data([trained(line())])
    told = data["runs"][0]
    assert data["tasks"][0]["sizes"] == [18, 1]
    rows = unpacked(told["prediction"]["parts"][0]["rows"])
    assert rows[rows >= 0].tolist() == [0, 1, 2]
    assert np.isnan(unpacked(told["match"])[rows < 0]).all()
    assert told["position_error"] is None


def test_what_cannot_be_explored_is_told(trained, tiny_spec, tmp_path, store):
    reader = replace(tiny_spec, decoder=cs.ImageEncoder(width=4))
    data = explorer_data([trained(reader)], {"lost": "no such run"})
    assert data["runs"] == []
    assert [problem["reason"] for problem in data["problems"]] == [
        "no such run",
        "ImageEncoder draws no images",
    ]


def test_three_factors_have_the_whole_grid_and_all_their_parts(trained, tiny_spec):
    three = trained(replace(tiny_spec, task=cs.BumpTask(8, brightness=(0.5, 1.0))))
    data = explorer_data([three])
    assert data["tasks"][0]["sizes"] == [8, 8, 2]
    told = data["runs"][0]
    assert unpacked(told["outputs"]).shape == (128, 8, 8)
    assert [len(unpacked(part["images"])) for part in told["prediction"]["parts"]] == [8, 8, 2]
    rows = [unpacked(part["rows"]) for part in told["prediction"]["parts"]]
    assert [row[5 * 16 + 3 * 2 + 1] for row in rows] == [5, 3, 1]
    parts = three.parts_alone([5 * 16 + 3 * 2 + 1])
    for part, row, own in zip(told["prediction"]["parts"], rows, parts, strict=True):
        images = part["images"]
        step = (images["high"] - images["low"]) / 254
        assert images["low"] + step * unpacked(images)[row[87]] == pytest.approx(own[0, 0].numpy(), abs=step)


def test_a_table_in_another_order_is_shown_in_the_grids(trained, tiny_spec, tmp_path):
    grid = cs.BumpTask(4).grid()
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    table = cs.TableTask(grid[order], cs.BumpTask(4).render(grid[order]), cs.BumpTask(4).factors, "dark")
    spec = replace(tiny_spec, task=table.save(tmp_path / "table.npz"), holdout=cs.Square(1, 2))
    data = explorer_data([trained(spec)])
    assert pixels(data["tasks"][0]["truth"]) == pytest.approx(cs.BumpTask(4).render(grid)[:, 0].numpy(), abs=1 / 254)
    assert unpacked(data["runs"][0]["heldout"]).reshape(4, 4)[1:3, 1:3].sum() == 4


def test_a_page_is_made_though_runs_are_missing_or_damaged(store, tiny_spec, tmp_path):
    good = run(tiny_spec, store)
    bad = run(replace(tiny_spec, seed=1), store)
    (store.folder / bad.run_id / "weights.safetensors").write_bytes(b"")
    seen = []
    asked = [good.run_id[:8], "0123", bad.run_id]
    path = write_explorer(store, asked, tmp_path / "page.html", lambda done, of: seen.append((done, of)))
    text = path.read_text()
    assert "2 runs cannot be shown" in text
    assert "begins with &#39;0123&#39;" in text
    assert "checksum does not match" in text
    assert seen == [(0, 1), (1, 1)]


def test_titles_tell_runs_apart(tiny_spec):
    stripes = replace(tiny_spec, sampling=cs.Stripes(stripes=0, bumps=7))
    deep = replace(tiny_spec, decoder=cs.MLP(depth=2, width=8))
    assert titles([tiny_spec, deep, stripes]) == [
        "bump, MLP, all seen (decoder.depth 1)",
        "bump, MLP, all seen (decoder.depth 2)",
        "bump, MLP, 7 of the seen",
    ]
    lowrank = replace(
        tiny_spec, encoding=cs.OneHot(), decoder=cs.LowRank(), penalties=(cs.Entropy(0.1), cs.Variance(0.01))
    )
    assert title(lowrank) == "one-hot, low-rank, all seen, entropy + variance"
    assert titles([tiny_spec, tiny_spec]) == ["bump, MLP, all seen"] * 2
    bright = replace(tiny_spec, task=cs.BumpTask(8, brightness=(0.5, 1.0)))
    assert titles([tiny_spec, bright]) == [
        "bump, MLP, all seen (bump: x, y)",
        "bump, MLP, all seen (bump: x, y, brightness)",
    ]


def test_values_with_names_are_named(trained, tiny_spec):
    task = cs.SpriteTask(12, x=(4, 6), y=(4, 6), shapes=("disc", "ring"), scales=(2.0,))
    spec = replace(tiny_spec, task=task, holdout=cs.Box({"x": (6, 6), "y": (6, 6)}), encoding=cs.OneHot())
    assert explorer_data([trained(spec)])["tasks"][0]["factors"][2] == {"name": "shape", "values": ["disc", "ring"]}


def test_a_report_makes_no_diagnosis_for_its_explorer(trained, tiny_spec):
    one = trained(tiny_spec)
    (told,) = explorer_data([one], stored_only=True)["runs"]
    assert told["layers"] == []
    assert told["notes"] == ["no layers to show: the run is not diagnosed"]
    assert not one.artifacts.has_diagnosis()
