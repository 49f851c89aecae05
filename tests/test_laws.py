"""Properties that every component must have, tested over the whole catalogue."""

import functools
import itertools
import json
import random
import tomllib
from dataclasses import replace

import pytest
import tomli_w
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import composcope as cs
from catalogue import CODINGS, COMPONENTS, DECODERS, FACTORS, HOLDOUTS, PENALTIES, ROLES, SAMPLINGS, TASKS, label
from composcope.factors import latent_grid
from composcope.randomness import seeded

CODE_SIZES = (8, 5, 3)
LATENTS = latent_grid(cs.BumpTask(8).factors)
FITTING = [(coding, factor) for coding in CODINGS for factor in FACTORS if coding.fits(factor)]
WITH_ABSENT = [(coding, factor) for coding, factor in FITTING if coding.has_absent]
DISTINCT_ABSENT = [  # the mean code of a single value is that value's code
    (coding, factor)
    for coding, factor in WITH_ABSENT
    if factor.size > 1 or getattr(coding.encoding, "absent", "zeros") != "mean"
]
SMOOTH = [(coding, factor) for coding, factor in FITTING if coding.encoding.differentiable]
WITHOUT_ABSENT = [(coding, factor) for coding, factor in FITTING if not coding.has_absent]
UNFIT = [(coding, factor) for coding in CODINGS for factor in FACTORS if not coding.fits(factor)]
DRAWING = [decoder for decoder in DECODERS if not isinstance(decoder, cs.ImageEncoder)]


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


# Every component


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.__name__)
def test_no_component_is_missing_from_the_catalogue(role):
    built_in = {kind for kind, cls in role.kinds.items() if cls.__module__.startswith("composcope.")}
    assert built_in == {component.kind for component in ROLES[role]}


@pytest.mark.parametrize("component", COMPONENTS, ids=label)
def test_component_survives_json_toml_and_leaving_out_its_defaults(component):
    data = component.to_dict()
    assert type(component.role.from_dict(data)) is type(component)
    for same in (
        json.loads(json.dumps(data, allow_nan=False)),
        tomllib.loads(tomli_w.dumps(data)),
        component.to_dict(defaults=False),
    ):
        assert component.role.from_dict(same) == component
        assert hash(component.role.from_dict(same)) == hash(component)


@pytest.mark.parametrize("component", COMPONENTS, ids=label)
def test_component_cannot_be_changed(component):
    with pytest.raises(AttributeError, match=r"frozen|cannot assign"):
        component.depth = 3


@pytest.mark.parametrize("component", COMPONENTS, ids=label)
def test_component_refuses_an_unknown_key(component):
    with pytest.raises(ValueError, match=r"surprise|described by file"):
        component.role.from_dict({**component.to_dict(), "surprise": 1})


# Encodings


@pytest.mark.parametrize(("coding", "factor"), FITTING, ids=label)
def test_distinct_latents_give_distinct_codes(coding, factor):
    codes = coding.encoding.encode(factor.tensor()[:, None], [factor])
    assert codes.isfinite().all()
    distances = torch.cdist(codes, codes) + torch.diag(torch.full((factor.size,), torch.inf))
    assert distances.min() > 1e-2


@pytest.mark.parametrize(("coding", "factor"), FITTING, ids=label)
def test_code_has_the_declared_size(coding, factor):
    codes = coding.encoding.encode(factor.tensor()[:, None], [factor])
    assert codes.shape == (factor.size, *coding.encoding.code_sizes([factor]))


@pytest.mark.parametrize("coding", CODINGS, ids=label)
def test_codes_of_factors_are_concatenated(coding):
    factors = [factor for factor in FACTORS if coding.fits(factor)]
    latents = latent_grid(factors)
    codes = coding.encoding.encode(latents, factors)
    sizes = coding.encoding.code_sizes(factors)
    assert codes.shape == (len(latents), sum(sizes))
    for part, values, factor in zip(codes.split(sizes, 1), latents.unbind(1), factors, strict=True):
        torch.testing.assert_close(part, coding.encoding.encode(values[:, None], [factor]))


@pytest.mark.parametrize(("coding", "factor"), FITTING, ids=label)
def test_decoding_undoes_encoding(coding, factor):
    latents = factor.tensor()[:, None]
    torch.testing.assert_close(coding.encoding.decode(coding.encoding.encode(latents, [factor]), [factor]), latents)


@pytest.mark.parametrize(("coding", "factor"), UNFIT, ids=label)
def test_encoding_refuses_a_factor_that_it_cannot_encode(coding, factor):
    with pytest.raises(ValueError, match=factor.name):
        coding.encoding.encode(factor.tensor()[:, None], [factor])


@pytest.mark.parametrize(("coding", "factor"), DISTINCT_ABSENT, ids=label)
def test_absent_factor_has_a_distinct_code(coding, factor):
    present = coding.encoding.encode(factor.tensor()[:, None], [factor])
    missing = coding.encoding.encode(torch.tensor([[torch.nan]]), [factor])
    assert missing.isfinite().all()
    assert torch.cdist(missing, present).min() > 1e-2


@pytest.mark.parametrize(("coding", "factor"), WITHOUT_ABSENT, ids=label)
def test_absence_is_refused_by_codes_that_cannot_represent_it(coding, factor):
    with pytest.raises(ValueError, match=factor.name):
        coding.encoding.encode(torch.tensor([[torch.nan], [factor.values[0]]]), [factor])


@pytest.mark.parametrize(("coding", "factor"), [pair for pair in SMOOTH if pair[0].has_absent], ids=label)
def test_no_nan_reaches_a_gradient(coding, factor):
    latents = torch.tensor([[torch.nan], [factor.values[0]], [factor.values[-1]]], requires_grad=True)
    coding.encoding.encode(latents, [factor]).square().sum().backward()
    assert latents.grad is not None
    assert latents.grad.isfinite().all()
    assert latents.grad[0] == 0


@pytest.mark.parametrize(("coding", "factor"), [pair for pair in SMOOTH if pair[1].size > 1], ids=label)
def test_derivative_of_the_code_is_its_slope(coding, factor):
    latent = torch.tensor([[factor.values[0] + 0.3 * factor.step]], dtype=torch.float64)
    step = 1e-5 * factor.step

    def code(latents):
        return coding.encoding.encode(latents, [factor])[0]

    slope = torch.autograd.functional.jacobian(code, latent).flatten()
    torch.testing.assert_close(slope, (code(latent + step) - code(latent - step)) / (2 * step), rtol=1e-4, atol=1e-6)
    assert slope.any()


# Holdouts


@pytest.mark.parametrize("task", [cs.BumpTask(8), cs.BumpTask(8, brightness=(0.5, 1.0))], ids=label)
@pytest.mark.parametrize("holdout", HOLDOUTS, ids=label)
def test_seen_and_heldout_are_disjoint_and_cover_the_grid(holdout, task):
    if isinstance(holdout, cs.Combinations) and len(task.factors) != 2:
        with pytest.raises(ValueError, match="has 2 values"):
            cs.split(task, holdout)
        return
    parts = cs.split(task, holdout)
    seen = {tuple(row) for row in parts.seen.tolist()}
    heldout = {tuple(row) for row in parts.heldout.tolist()}
    assert not seen & heldout
    assert seen | heldout == {tuple(row) for row in task.grid().tolist()}
    assert len(parts.seen) + len(parts.heldout) == len(task.grid())
    assert parts.certificate.disjoint
    assert parts.certificate.covers


@pytest.mark.parametrize("holdout", HOLDOUTS, ids=label)
def test_certificate_names_the_values_that_are_never_seen(holdout):
    task = cs.BumpTask(8)
    parts = cs.split(task, holdout)
    unseen = {}
    for index, factor in enumerate(task.factors):
        missing = set(factor.values) - set(parts.seen[:, index].tolist())
        if missing:
            unseen[factor.name] = tuple(sorted(missing))
    assert parts.certificate.missing == unseen
    assert parts.certificate.composition == (not unseen)


@pytest.mark.parametrize("holdout", [part for part in HOLDOUTS if not isinstance(part, cs.Complement)], ids=label)
def test_a_combination_without_any_factor_is_in_no_region(holdout):
    missing = torch.full((1, 2), torch.nan)
    assert not holdout.contains(missing, cs.BumpTask(8).factors).any()


holdouts = st.recursive(
    st.sampled_from(HOLDOUTS),
    lambda parts: st.one_of(
        st.builds(lambda a, b: a | b, parts, parts),
        st.builds(lambda a, b: a & b, parts, parts),
        st.builds(lambda a: ~a, parts),
    ),
    max_leaves=4,
)


def inside(holdout):
    return holdout.contains(LATENTS, cs.BumpTask(8).factors).tolist()


@given(a=holdouts, b=holdouts)
@settings(max_examples=60, deadline=None)
def test_de_morgan(a, b):
    assert inside(~(a | b)) == inside(~a & ~b)
    assert inside(~(a & b)) == inside(~a | ~b)


@given(a=holdouts, b=holdouts, c=holdouts)
@settings(max_examples=60, deadline=None)
def test_union_and_intersection_are_those_of_sets(a, b, c):
    assert inside(~~a) == inside(a)
    assert inside(a | b) == inside(b | a) == [p or q for p, q in zip(inside(a), inside(b), strict=True)]
    assert inside(a & b) == inside(b & a) == [p and q for p, q in zip(inside(a), inside(b), strict=True)]
    assert inside(a & (b | c)) == inside((a & b) | (a & c))
    assert inside(a | cs.Nothing()) == inside(a)


@given(a=holdouts)
@settings(max_examples=60, deadline=None)
def test_algebra_survives_toml(a):
    assert cs.Holdout.from_dict(tomllib.loads(tomli_w.dumps(a.to_dict()))) == a


# Tasks


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_images_have_the_declared_shape_and_are_within_0_and_1(task):
    images = task.render(task.grid())
    assert images.shape == (len(task.grid()), *task.image_shape)
    assert images.isfinite().all()
    assert images.min() >= 0
    assert images.max() <= 1
    assert images.dtype == torch.float32


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_rendering_is_deterministic_and_row_by_row(task):
    grid = task.grid()
    images = task.render(grid)
    assert torch.equal(images, task.render(grid))
    order = torch.randperm(len(grid), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(task.render(grid[order]), images[order])


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_distinct_combinations_give_distinct_images(task):
    images = task.render(task.grid()).flatten(1)
    distances = torch.cdist(images, images) + torch.diag(torch.full((len(images),), torch.inf))
    assert distances.min() > 1e-2


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_grid_has_all_combinations_with_the_first_factor_slowest(task):
    assert torch.equal(task.grid(), latent_grid(task.factors))


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_blank_images_have_no_foreground(task):
    assert task.blank(3).shape == (3, *task.image_shape)
    assert not task.foreground(task.blank(3)).any()
    # Noise, or a room without a background, has values on both sides of the background that is learned from it.
    if not isinstance(task, cs.TableTask | cs.Shapes3D | cs.MPI3D):
        assert task.foreground(task.render(task.grid())).min() >= 0


@pytest.mark.parametrize("task", [task for task in TASKS if task.positions], ids=label)
def test_locating_undoes_rendering(task):
    grid = task.grid()
    columns = [[factor.name for factor in task.factors].index(name) for name in task.positions]
    # A shape's centre of mass moves a little with the pixels that its edge falls on.
    close = 0.02 if isinstance(task, cs.BumpTask) else 0.05
    assert (task.locate(task.render(grid)) - grid[:, columns]).abs().max() < close


@pytest.mark.parametrize("task", [task for task in TASKS if not task.positions], ids=label)
def test_a_task_without_positions_says_so(task):
    with pytest.raises(ValueError, match="no position"):
        task.locate(task.render(task.grid()))


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_draws_are_the_same_for_the_same_seed(task):
    draws = [task.draw(20, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert task.render(draws[0]).isfinite().all()


@pytest.mark.parametrize("task", [task for task in TASKS if getattr(task, "absent", "") in ("max", "mean")], ids=label)
def test_absent_factors_are_drawn_over_all_of_their_values(task):
    grid, images = task.grid(), task.foreground(task.render(task.grid()))
    for gone in itertools.product([False, True], repeat=len(task.factors)):
        some = grid[[0, len(grid) // 2, -1]].masked_fill(torch.tensor(gone), torch.nan)
        for latents, drawn in zip(some, task.foreground(task.render(some)), strict=True):
            agree = ((grid == latents) | latents.isnan()).all(1)
            expected = images[agree].amax(0) if task.absent == "max" else images[agree].mean(0)
            torch.testing.assert_close(drawn, expected, atol=1e-5, rtol=0)


# Decoders


def built(decoder, image_shape, seed=0):
    with seeded(seed, "test"):
        return decoder.build(CODE_SIZES, image_shape)


def batch_for(decoder, image_shape, n=2):
    rng = torch.Generator().manual_seed(0)
    codes = torch.rand(n, sum(CODE_SIZES), generator=rng)
    return decoder.pairs(codes, torch.rand(n, *image_shape, generator=rng))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [8, 13, 28, 64])
@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_output_has_the_shape_of_the_target(decoder, side, channels):
    module = built(decoder, (channels, side, side)).eval()
    inputs, targets = batch_for(decoder, (channels, side, side))
    with torch.no_grad():
        outputs = module(inputs)
    assert outputs.shape == targets.shape
    assert outputs.isfinite().all()


@pytest.mark.parametrize("shape", [(1, 8, 13), (2, 17, 9)], ids=str)
@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_decoder_accepts_images_that_are_not_square(decoder, shape):
    inputs, targets = batch_for(decoder, shape)
    assert built(decoder, shape)(inputs).shape == targets.shape


@pytest.mark.parametrize("decoder", DRAWING, ids=label)
def test_drawer_maps_codes_to_images(decoder):
    drawer = decoder.drawer(built(decoder, (1, 13, 13)))
    assert drawer(torch.rand(4, sum(CODE_SIZES))).shape == (4, 1, 13, 13)


@pytest.mark.parametrize("decoder", DRAWING, ids=label)
def test_layers_are_the_direct_children_in_order_and_end_with_the_image(decoder):
    drawer = decoder.drawer(built(decoder, (1, 13, 13)).eval())
    names = [name for name, _ in drawer.named_children()]
    assert names[-1] == "image"
    assert len(set(names)) == len(names)
    codes = torch.rand(2, sum(CODE_SIZES), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        activation = codes
        for _, layer in drawer.named_children():
            activation = layer(activation)
        torch.testing.assert_close(activation, drawer(codes))


@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_layer_names_do_not_depend_on_size_or_channels(decoder):
    names = [list(dict(built(decoder, shape).named_parameters())) for shape in ((1, 8, 8), (3, 28, 28))]
    assert names[0] == names[1]


@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_gradients_reach_every_parameter(decoder):
    module = built(decoder, (1, 13, 13), seed=1).train()
    inputs, targets = batch_for(decoder, (1, 13, 13), n=8)
    (module(inputs) - targets).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # Normalisation subtracts a bias that precedes it, so the bias has gradient zero.
        assert parameter.grad.any() or name.endswith("bias"), name


@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_same_seed_builds_the_same_bytes(decoder):
    states = [built(decoder, (1, 13, 13), seed).state_dict() for seed in (0, 0, 1)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])


@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_decoder_accepts_a_single_sample(decoder):
    inputs, targets = batch_for(decoder, (1, 8, 8), n=1)
    assert built(decoder, (1, 8, 8)).train()(inputs).shape == targets.shape


# Samplings and penalties


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=label)
@pytest.mark.parametrize("task", [cs.BumpTask(8), cs.BumpTask(8, brightness=(0.5, 1.0))], ids=label)
def test_no_heldout_combination_is_sampled(task, sampling):
    holdout = cs.Square(2, 5)
    latents = sampling.sample(task, holdout, torch.Generator().manual_seed(0))
    assert len(latents) > 0
    assert not holdout.contains(latents, task.factors).any()
    grid = latent_grid(task.factors)
    for index, column in enumerate(latents.unbind(1)):
        assert torch.isin(column[~column.isnan()], grid[:, index]).all()


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=label)
def test_count_is_the_number_of_samples(sampling, rng):
    task, holdout = cs.BumpTask(8), cs.Square(2, 5)
    assert sampling.count(task, holdout) == len(sampling.sample(task, holdout, rng))


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=label)
def test_sampling_depends_on_the_generator_only(sampling):
    task, holdout = cs.BumpTask(8), cs.Square(2, 5)
    samples = [sampling.sample(task, holdout, torch.Generator().manual_seed(3)) for _ in range(2)]
    torch.testing.assert_close(samples[0], samples[1], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=label)
def test_example_latents_have_every_pattern_of_absence(sampling, rng):
    task, holdout = cs.BumpTask(8), cs.Square(2, 5)
    patterns = {tuple(row) for row in sampling.sample(task, holdout, rng).isnan().tolist()}
    assert patterns <= {tuple(row) for row in sampling.example_latents(task).isnan().tolist()}


def training_data():
    """What a penalty is given for an 8 x 8 bump task with a square held out."""
    task, parts = cs.BumpTask(8), cs.split(cs.BumpTask(8), cs.Square(2, 5))
    codes, heldout = (cs.OneHot().encode(latents, task.factors) for latents in (parts.seen, parts.heldout))
    return cs.TrainingData(codes, task.render(parts.seen), heldout, (8, 8), torch.Generator().manual_seed(0))


def lowrank():
    with seeded(0, "test"):
        return cs.LowRank(rank=2).build((8, 8), (1, 8, 8))


@pytest.mark.parametrize("penalty", PENALTIES, ids=label)
def test_penalty_is_a_finite_scalar_with_gradients(penalty):
    module = lowrank()
    for parameter in module.parameters():  # equal weights are a stationary point of the entropy
        parameter.data *= torch.linspace(0.5, 1.5, parameter.numel()).reshape(parameter.shape)
    data = training_data()
    loss = penalty.start(data)(module, cs.Batch(data.codes[:8], data.images[:8], None))
    loss.backward()
    assert loss.ndim == 0
    assert loss.isfinite()
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in module.parameters())


@pytest.mark.parametrize("penalty", PENALTIES, ids=label)
def test_penalty_is_proportional_to_its_weight(penalty):
    module, data = lowrank(), training_data()
    batch = cs.Batch(data.codes[:8], data.images[:8], None)
    losses = [
        replace(penalty, weight=weight).start(training_data())(module, batch).item() for weight in (0.0, 1.0, 2.0)
    ]
    assert losses[0] == 0
    assert losses[2] == pytest.approx(2 * losses[1])
    assert losses[1] > 0


@pytest.mark.parametrize("penalty", PENALTIES, ids=label)
def test_penalty_refuses_a_decoder_that_it_cannot_act_on(penalty):
    unfit = cs.MLP() if penalty.kind in ("entropy", "variance") else cs.ImageEncoder()
    with pytest.raises(ValueError, match=type(unfit).__name__):
        penalty.check(unfit)


# Specs


@functools.cache
def random_combinations(count=160):
    """Specs of randomly chosen components, without those that do not fit each other."""
    rng, specs = random.Random(0), []
    for _ in range(count):
        task, holdout, coding = rng.choice(TASKS), rng.choice(HOLDOUTS), rng.choice(CODINGS)
        parts = {"decoder": rng.choice(DECODERS), "sampling": rng.choice(SAMPLINGS), "seed": rng.randrange(2**40)}
        training = rng.choice([cs.Training(), cs.Training(steps=7, l1=0.1, snapshots=(2, 5), schedule="cosine")])
        penalties = tuple(PENALTIES[: rng.randrange(5)]) if parts["decoder"].embeds else ()
        try:
            specs.append(cs.Spec(task, holdout, coding.encoding, **parts, training=training, penalties=penalties))
        except ValidationError:
            continue
    return specs


def test_every_combination_survives_json_and_toml_with_the_same_id():
    specs = random_combinations()
    assert len(specs) > 20
    for spec in specs:
        for loaded in (
            cs.Spec.from_dict(json.loads(json.dumps(spec.to_dict(), allow_nan=False))),
            cs.Spec.from_dict(tomllib.loads(spec.to_toml())),
        ):
            assert loaded == spec
            assert loaded.run_id == spec.run_id
            assert loaded.to_toml() == spec.to_toml()


def test_different_specs_have_different_ids():
    specs = random_combinations()
    assert len({spec.run_id for spec in specs}) == len(specs)


@pytest.mark.parametrize("decoder", DECODERS, ids=label)
def test_every_decoder_completes_a_run(decoder, tiny_spec, store):
    task = cs.BumpTask(8, polarity=decoder.polarity or "dark")
    spec = replace(tiny_spec, task=task, decoder=decoder, training=cs.Training(steps=2))
    result = cs.run(spec, store)
    assert result.measures["error"]
    assert all(value is None or value >= 0 for value in result.measures["error"].values())


@pytest.mark.parametrize("coding", [coding for coding in CODINGS if coding.fits(FACTORS[0])], ids=label)
def test_every_encoding_completes_a_run(coding, tiny_spec):
    encoding = coding.encoding
    if isinstance(encoding, cs.PerFactor):
        encoding = cs.PerFactor({"x": encoding.encodings["x"], "y": cs.Bump()})
    result = cs.run(replace(tiny_spec, encoding=encoding))
    assert result.measures["error"]["heldout_mse"] > 0


@pytest.mark.parametrize("holdout", HOLDOUTS, ids=label)
@pytest.mark.filterwarnings("ignore::composcope.NotComposition")
def test_every_holdout_completes_a_run(holdout, tiny_spec):
    measured = cs.run(replace(tiny_spec, holdout=holdout)).measures["error"]
    assert (measured["heldout_mse"] is None) == isinstance(holdout, cs.Nothing)


@pytest.mark.parametrize("task", TASKS, ids=label)
def test_every_task_completes_a_run(task, tiny_spec, store):
    first, last = task.factors[0], task.factors[-1]
    corner = cs.Box({first.name: (first.values[0],) * 2, last.name: (last.values[0],) * 2})
    holdout = corner if len(task.factors) > 1 else cs.Nothing()
    encoding = cs.Bump() if task == cs.BumpTask(8, continuous=True) else cs.OneHot()
    spec = replace(tiny_spec, task=task, holdout=holdout, encoding=encoding)
    result = cs.run(spec, store)
    assert result.module(encoding.encode(task.grid()[:2], task.factors)).shape == (2, *task.image_shape)
    assert ("accuracy" in result.measures["error"]) == bool(task.positions)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=label)
def test_every_sampling_completes_a_run(sampling, tiny_spec):
    assert cs.run(replace(tiny_spec, sampling=sampling)).measures["error"]["seen_mse"] > 0
