"""The paper's decoders and their training as a user would write them in PyTorch: transposed convolutions everywhere."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import l1_loss, mse_loss, normalize
from torch.utils.data import DataLoader, TensorDataset

import composcope as cs


def cnn(code: int, side: int, depth: int, width: int) -> nn.Sequential:
    """The convolutional decoder, from a 1 x 1 map on."""
    layers: list[nn.Module] = [nn.Unflatten(1, (code, 1, 1)), nn.ConvTranspose2d(code, width, side // 4), nn.ReLU()]
    for _ in range(2):
        layers += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
    for _ in range(depth - 2):
        layers += [nn.ConvTranspose2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 1, 3, padding=1))


def rotation_cnn(code: int, side: int, width: int) -> nn.Sequential:
    """The decoder of rotated digits: batch norm, and pixels within 0..1."""
    layers: list[nn.Module] = [nn.Unflatten(1, (code, 1, 1)), nn.ConvTranspose2d(code, width, side // 4)]
    for _ in range(2):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.ConvTranspose2d(width, width, 4, stride=2, padding=1)]
    layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.ConvTranspose2d(width, 1, 3, padding=1), nn.Sigmoid()]
    return nn.Sequential(*layers)


class LowRank(nn.Module):
    """W = sum_n lambda_n v_n u_n^T of full rank for every value of x and of y; a small CNN draws from one of each."""

    def __init__(self, side: int) -> None:
        super().__init__()
        vectors = [normalize(torch.randn(side, side, side), dim=2) for _ in range(4)]
        self.v, self.u = nn.ParameterList(vectors[:2]), nn.ParameterList(vectors[2:])
        self.weights = nn.ParameterList(torch.randn(side, side) / side**0.5 for _ in range(2))
        hidden = [layer for _ in range(2) for layer in (nn.PReLU(), nn.ConvTranspose2d(2, 2, 3, padding=1))]
        self.draw = nn.Sequential(*hidden, nn.PReLU(), nn.ConvTranspose2d(2, 1, 3, padding=1))

    def forward(self, codes: Tensor) -> Tensor:
        maps = []
        for code, v, u, weight in zip(codes.chunk(2, 1), self.v, self.u, self.weights, strict=True):
            matrices = torch.einsum("krh,kr,krw->khw", normalize(v, dim=2), weight, normalize(u, dim=2))
            maps.append(torch.einsum("nk,khw->nhw", code, matrices))
        drawn: Tensor = self.draw(torch.stack(maps, 1))
        return drawn

    def penalty(self) -> Tensor:
        """Entropy of the weights' energies and variance of the vectors, with the paper's weights."""
        shares = [weight.square() / weight.square().sum(1, keepdim=True) for weight in self.weights]
        entropy = torch.stack([torch.special.entr(share).sum() for share in shares]).sum()
        variance = torch.stack([vectors.var(2).sum() for vectors in (*self.v, *self.u)]).sum()
        return 0.1 * entropy + 0.01 * variance


def epochs(
    model: nn.Module, codes: Tensor, images: Tensor, settings: cs.Training, compiled: bool = False
) -> Callable[[], None]:
    """Some epochs; a penalty is added if the model has one."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    call = torch.compile(model) if compiled else model
    loader = DataLoader(TensorDataset(codes, images), batch_size=settings.batch, shuffle=True)

    def run() -> None:
        for _ in range(settings.epochs or 1):
            for code, image in loader:
                optimiser.zero_grad()
                drawn = call(code)
                loss = mse_loss(drawn, image)
                if settings.l1:
                    loss = loss + settings.l1 * l1_loss(drawn, image)
                if isinstance(model, LowRank):
                    loss = loss + model.penalty()
                loss.backward()
                optimiser.step()

    return run
