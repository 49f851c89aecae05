"""Which layers a module has, their outputs in bounded memory, and exact derivatives."""

import os
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import composcope as cs
from composcope.activations import Subject, code_tangents
from composcope.activations.derivatives import metrics_of
from composcope.activations.recording import evaluating, record
from composcope.activations.subject import home
from composcope.measures.geometry import grid_metric

TASK = cs.BumpTask(8)
CODES = cs.Bump().encode(TASK.grid(), TASK.factors)


def names(module, codes=CODES, pick=None):
    return list(Subject(module, codes, pick).layers)


def metrics(module, encoding=None, task=TASK):
    encoding = encoding or cs.Bump()
    codes = encoding.encode(task.grid(), task.factors)
    tangents = code_tangents(encoding, task.grid(), task.factors, (0, 1))
    return Subject(module, codes).metrics(codes, tangents)


class Odd(nn.Module):
    """Functional activations, a block, a residual, a layer called twice, attention and a tuple."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.5))
        self.shared = nn.Linear(8, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 64))

    def forward(self, code):
        h = F.relu(self.fc(code))
        h = self.block(h)
        h = h + torch.tanh(self.shared(h))
        h = self.shared(h).relu_()
        h = self.attend(h[:, None], h[:, None], h[:, None])[0][:, 0]
        return h, {"picture": torch.sigmoid(self.net(h)).view(-1, 1, 8, 8)}


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, h):
        return h + self.inner(h)


class Scribbler(nn.Module):
    """Writes into its input, into a layer's output after the fact, and draws random numbers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 8), nn.Linear(8, 64)

    def forward(self, code):
        code += 1
        h = self.a(code)
        g = h.clone()
        h.zero_()
        return self.b(g).view(-1, 1, 8, 8) + 0 * torch.randn(1)


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        (cs.CNN(2, 4, batch_norm=True, output="sigmoid"), ["code", "first", "conv1", "conv2", "image"]),
        (cs.MLP(2, 8), ["code", "hidden1", "hidden2", "image"]),
        (cs.LowRank(), ["code", "embedding", "conv1", "conv2", "image"]),
        (cs.Pixelwise(1, 8), ["code", "tokens", "hidden1", "image"]),
        (cs.Transformer(1, 8), ["code", "tokens", "attention1", "image"]),
    ],
)
def test_our_decoders_layers_are_their_children(decoder, expected):
    assert names(decoder.build((8, 8), (1, 8, 8))) == expected


def test_a_strangers_layers_end_after_the_nonlinearity():
    odd = Odd()
    found = Subject(odd, CODES, lambda out: out[1]["picture"])
    assert list(found.layers) == ["code", "fc", "block", "shared", "shared#2", "attend", "net.0", "image"]
    assert found.layers["net.0"].kind == "Linear"
    values, _ = record(odd.eval(), CODES, lambda out: out[1]["picture"])
    assert (values["fc"] >= 0).all()
    assert (values["block"] >= 0).all()
    assert torch.equal(values["fc"], F.relu(odd.fc(CODES)))
    assert torch.equal(values["block"], odd.block(values["fc"]))
    assert torch.equal(values["image"], odd(CODES)[1]["picture"])


def test_numbered_sequences_merge_activations_and_nested_blocks_open():
    stack = nn.Sequential(
        nn.Linear(16, 8), nn.LayerNorm(8), nn.GELU(), Residual(), nn.Linear(8, 64), nn.Unflatten(1, (1, 8, 8))
    )
    assert names(stack) == ["code", "0", "3.inner", "3", "image"]
    wrapped = nn.Sequential(
        nn.Sequential(nn.Linear(16, 8), nn.ReLU()), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 64))
    )
    assert names(nn.Sequential(wrapped, nn.Unflatten(1, (1, 8, 8)))) == ["code", "0.0", "0.1.0", "image"]


def test_an_activation_of_ones_own_joins_and_reserved_names_are_kept_apart():
    class Swish(nn.Module):
        def forward(self, h):
            return h * h.sigmoid()

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.code, self.act, self.image = nn.Linear(16, 8), Swish(), nn.Linear(8, 64)

        def forward(self, code):
            return 1 - self.image(self.act(self.code(code))).view(-1, 1, 8, 8)

    assert names(Named()) == ["code", "code#2", "image#2", "image"]


def test_records_are_copies_and_the_callers_codes_stay():
    scribbler, before = Scribbler(), CODES.clone()
    state = torch.get_rng_state()
    parts = {part.layer.name: part.values for part in Subject(scribbler, CODES).parts(CODES, 10**6)}
    assert torch.equal(CODES, before)
    assert torch.equal(parts["code"], before)
    assert parts["a"].abs().sum() > 0
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda h: h.zero_(),
        lambda h: h.view(-1).mul_(0),
        lambda h: F.relu(h, inplace=True).neg_(),
        lambda h: F.leaky_relu(h, -1.0, True),
        lambda h: h.__setitem__(0, 7.0),
        lambda h: h.__iadd__(5),
        lambda h: torch.add(h, 1, out=h),
        lambda h: h.data.fill_(3),
        lambda h: torch.jit.script(torch.nn.ReLU(inplace=True))(h),
    ],
)
def test_writing_in_place_does_not_spoil_what_was_recorded(spoil):
    class Spoiler(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(16, 8), nn.Linear(8, 64)

        def forward(self, code):
            h = self.a(code)
            image = self.b(h).view(-1, 1, 8, 8)
            spoil(h)
            return image

    module = Spoiler()
    scripted = "script" in spoil.__code__.co_names
    for copies in (True,) if scripted else (True, False):
        with torch.no_grad():
            values, _ = record(module, CODES, copies=copies)
        torch.testing.assert_close(values["a"], module.a(CODES).detach())


def test_outputs_that_do_not_go_by_the_batch_are_left_out():
    class Sideways(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.last = nn.Linear(16, 64), nn.Linear(64, 64)
            self.lookup = nn.Embedding(4, 4)

        def forward(self, code):
            self.lookup(torch.arange(4))
            tokens = self.turn(code.expand(5, *code.shape))
            return self.last(tokens.mean(0)).view(-1, 1, 8, 8)

    found = Subject(Sideways(), CODES)
    assert list(found.layers) == ["code", "image"]
    assert set(found.skipped) == {"lookup", "turn"}


def test_modes_hooks_and_grad_are_as_before_even_after_an_error():
    module = nn.Sequential(
        nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 64), nn.Unflatten(1, (1, 8, 8))
    )
    module.train()
    module[1].eval()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    subject = Subject(module, CODES)
    assert torch.equal(subject.images(CODES), subject.images(CODES))
    with pytest.raises(cs.BadInput, match=r"\(2, 5\)"):
        Subject(module, torch.zeros(4, 5))
    assert [part.training for part in module.modules()] == [True, True, False, True, True, True]
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(ZeroDivisionError), evaluating(module, torch.device("cpu")):
        raise ZeroDivisionError
    assert module.training


def test_parts_put_together_are_the_layer_however_little_memory():
    module = cs.CNN(2, 4).build((8, 8), (1, 8, 8))
    subject = Subject(module, CODES)
    whole, _ = record(module.eval(), CODES)
    for memory in (4 * len(CODES) * 50, 10**9):
        joined: dict = {}
        for part in subject.parts(CODES, memory):
            assert part.values.numel() * 4 <= memory
            joined.setdefault(part.layer.name, []).append(part.values)
        for name, values in whole.items():
            torch.testing.assert_close(torch.cat(joined[name], 1), values.flatten(1), atol=1e-6, rtol=1e-5)


def test_the_metric_of_a_linear_layer_is_its_weights_product():
    module = nn.Sequential(nn.Linear(2, 5, bias=True), nn.Unflatten(1, (1, 1, 5)))
    weight = module[0].weight.detach().double()
    found = metrics(module, cs.Rate())
    torch.testing.assert_close(found["image"], (weight.T @ weight).expand(64, 2, 2), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(found["code"], torch.eye(2).double().expand(64, 2, 2))


@pytest.mark.parametrize("module", [cs.CNN(2, 8), cs.CNN(3, 16, batch_norm=True), cs.Transformer(1, 8), cs.LowRank()])
def test_exact_derivatives_are_those_of_reverse_mode(module):
    built = module.build((8, 8), (1, 8, 8)).double().eval()
    latents = TASK.grid()[[5, 20, 43]]
    codes = cs.Bump().encode(latents, TASK.factors)
    tangents = code_tangents(cs.Bump(), latents, TASK.factors, (0, 1))
    found = Subject(built, codes).metrics(codes, tangents)["image"]
    for row in range(3):
        jacobian = torch.autograd.functional.jacobian(lambda code: built(code[None])[0].flatten(), codes[row].double())
        slopes = jacobian @ tangents[:, row].double().T
        torch.testing.assert_close(found[row], slopes.T @ slopes, atol=1e-9, rtol=1e-6)


def test_exact_and_differences_meet_as_the_grid_gets_finer():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 9), nn.Unflatten(1, (1, 3, 3)))
    gaps = []
    for steps in (8, 16, 32):
        factors = tuple(cs.Factor(name, torch.linspace(0, 2, steps).tolist()) for name in "xy")
        latents = torch.cartesian_prod(*(factor.tensor() for factor in factors))
        tangents = code_tangents(cs.Rate(), latents, factors, (0, 1))
        subject = Subject(module, latents)
        exact = subject.metrics(latents, tangents)["image"].reshape(steps, steps, 2, 2)
        rough = grid_metric(subject.images(latents), factors).reshape(steps, steps, 2, 2)
        gaps.append(((exact - rough)[1:-1, 1:-1].norm() / exact.norm()).item())
    assert gaps[1] < gaps[0] / 3
    assert gaps[2] < gaps[1] / 3


def test_nearly_parallel_derivatives_keep_their_volume():
    torch.manual_seed(0)
    slopes = torch.randn(2, 3, 4000)
    slopes[1] = slopes[0] + 1e-4 * slopes[1]
    found, exact = metrics_of(slopes), slopes.double().permute(1, 0, 2) @ slopes.double().permute(1, 2, 0)
    torch.testing.assert_close(torch.linalg.det(found), torch.linalg.det(exact), rtol=1e-6, atol=0)
    assert not metrics_of(torch.zeros(2, 3, 4000)).any()


def test_a_module_that_cannot_be_vectorised_is_differentiated_axis_by_axis():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(16, 64)

        def forward(self, code):
            image = torch.zeros(len(code), 64)
            image[:] = self.fc(code)  # writing a derivative into a fresh tensor is what vmap refuses
            return image.view(-1, 1, 8, 8)

    module = Branching()
    found = metrics(module)
    plain = metrics(nn.Sequential(module.fc, nn.Unflatten(1, (1, 8, 8))))
    torch.testing.assert_close(found["image"], plain["image"])


def test_weights_that_depend_on_the_code_are_differentiated_too():
    class Hyper(nn.Module):
        def forward(self, code):
            return F.linear(torch.ones(len(code), 1, 1), code.sum(0)[:, None])[:, 0, :8].reshape(-1, 1, 1, 8)

    codes, tangents = torch.rand(1, 16), torch.rand(1, 1, 16)
    found = Subject(Hyper(), codes).metrics(codes, tangents)["image"]
    torch.testing.assert_close(found[0, 0, 0], tangents[0, 0, :8].double().square().sum())


def test_why_there_is_no_derivative_is_told():
    class Opaque(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Module(nn.Module):
        def forward(self, code):
            return Opaque.apply(code).view(-1, 1, 4, 4)

    tangents = code_tangents(cs.Bump(), TASK.grid(), TASK.factors, (0, 1))
    assert "Error" in Subject(Module(), CODES).differentiates(CODES, tangents)
    assert "OneHot" in code_tangents(cs.OneHot(), TASK.grid(), TASK.factors, (0, 1))
    steps = code_tangents(
        lambda latents: F.one_hot(latents.long(), 8).float().flatten(1), TASK.grid(), TASK.factors, (0,)
    )
    assert "x" in steps
    assert isinstance(steps, str)
    assert isinstance(code_tangents(lambda latents: torch.sqrt(latents), TASK.grid(), TASK.factors, (0,)), str)


def test_a_function_and_mixed_encodings_have_derivatives_factor_by_factor():
    tangents = code_tangents(lambda latents: latents * 3, TASK.grid(), TASK.factors, (0, 1))
    assert tangents[0].unique(dim=0).tolist() == [[3.0, 0.0]]
    task = cs.RotationTask((1, 4), 12)
    mixed = cs.PerFactor({"angle": cs.Circle(), "digit": cs.OneHot()})
    tangents = code_tangents(mixed, task.grid(), task.factors, (0,))
    assert tangents.shape == (1, 24, 4)
    assert not tangents[..., 2:].any()


def test_home_is_where_the_parameters_are():
    assert home(nn.Linear(2, 2, device="meta"))[0].type == "meta"
    assert home(nn.Linear(2, 2).double()) == (torch.device("cpu"), torch.float64)
    assert home(nn.Identity()) == (torch.device("cpu"), torch.float32)
    module = nn.Sequential(nn.Linear(16, 64).double(), nn.Unflatten(1, (1, 8, 8)))
    images = Subject(module, CODES, device="cpu").images(CODES)
    assert images.dtype == torch.float32
    with pytest.raises(cs.BadInput, match="nowhere"):
        Subject(module, CODES, device="nowhere")


def test_layers_are_chosen_by_name():
    module = cs.MLP(2, 8).build((8, 8), (1, 8, 8))
    assert list(Subject(module, CODES, layers=["hidden2", "image"]).layers) == ["hidden2", "image"]
    with pytest.raises(cs.BadInput, match=r"hidden9.*hidden1"):
        Subject(module, CODES, layers=["hidden9"])


SCRIPT = """
import torch, composcope as cs
from composcope.activations import Subject, code_tangents
torch.set_num_threads(1)

class Wide(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.narrow, self.wide = torch.nn.Linear(24, 1000), torch.nn.Upsample(scale_factor=features // 1000)

    def forward(self, code):
        return self.wide(self.narrow(code)[:, None])[:, 0, ::7][:, :144].reshape(-1, 1, 12, 12)

def peak():
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

def study(module):
    task = cs.BumpTask(12)
    codes = cs.Bump().encode(task.grid(), task.factors)
    subject = Subject(module, codes)
    subject.metrics(codes, code_tangents(cs.Bump(), task.grid(), task.factors, (0, 1)))
    for part in subject.parts(codes, 64 * 2**20):
        del part

study(Wide(7000))
before = peak()
study(Wide(400_000))
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read as Linux tells it")
def test_memory_stays_bounded():
    """The layer is 230 MB over the grid and its derivatives 460 MB, or 920 MB in double precision."""
    freed = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}  # what is freed goes back, so that the peak is ours
    grown = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=freed).stdout
    assert float(grown) < 400


def test_codes_that_are_alike_are_drawn_once():
    drawn = []

    class Counting(nn.Module):
        def forward(self, code):
            drawn.append(len(code))
            return 2 * code

    codes = torch.tensor([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    subject = Subject(Counting(), codes)
    drawn.clear()
    assert torch.equal(subject.images(codes), 2 * codes)
    assert drawn == [3]
