"""The diagnosis of a generator without one true image per combination: readers are trained, images drawn and read."""

import time
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from composcope.activations.adapters import Decode, Encode, Inputs
from composcope.activations.recording import Pick
from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.errors import Errors
from composcope.diagnosis.points import Notes
from composcope.diagnosis.sampler import BATCH, Sampler
from composcope.diagnosis.structure import no_kernels
from composcope.errors import BadInput
from composcope.holdouts import GivenHoldout, certify, split
from composcope.readers.clock import Clock, OnProgress
from composcope.readers.factor_readers import GivenReader
from composcope.readers.ready import Readers, ready
from composcope.tasks.base import Images
from composcope.tasks.examples import Examples
from composcope.verdict.by_readers import Drawn, Pictures, verdict_by_readers
from composcope.verdict.readings import Readings

# Combinations drawn, at most: of a larger hole some at random. Seen ones are a control and need not be as many.
MAX_HELDOUT, MAX_SEEN = 400, 64
SHOWN, FEW = 6, 4  # held-out combinations that are shown, and images of each


@dataclass(frozen=True)
class Plan:
    """What is drawn: rows of the task's grid, `samples` images of each, the held-out ones first."""

    latents: Tensor
    heldout: Int[Tensor, "held"]
    seen: Int[Tensor, "seen"]
    samples: int

    @property
    def rows(self) -> Int[Tensor, "images"]:
        return torch.cat([self.heldout, self.seen]).repeat_interleave(self.samples)


def diagnose_generator(
    generator: Decode,
    task: Examples,
    holdout: GivenHoldout,
    encoding: Encode,
    *,
    inputs: Inputs = "code",
    pick: Pick = None,
    reader: GivenReader | Readers | None = None,
    n_samples: int = 32,
    device: str | torch.device | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """What `diagnose` does where the task is `Examples`; see there."""
    if n_samples < 1:
        raise BadInput(f"n_samples = {n_samples}: at least one image of each combination is needed")
    parts = split(task, holdout)
    mask, present = parts.mask, task.present
    if not (present & ~mask).any():
        raise BadInput("there are no images of seen combinations")
    kept = present | mask  # a combination without images that is not held out was never seen
    certificate = certify(task.factors, parts.latents[kept], mask[kept])
    notes: Notes = {}
    if not mask.any():
        raise BadInput("nothing is held out, so there is nothing to compose: give the held-out combinations")
    clock = Clock(on_progress)
    rng = torch.Generator().manual_seed(seed)
    sampler = Sampler(generator, task, encoding, inputs, pick, device)
    plan = Plan(
        parts.latents,
        _some(mask, MAX_HELDOUT, rng),
        _some(present & ~mask, MAX_SEEN, rng),
        n_samples,
    )
    if len(plan.heldout) < int(mask.sum()):
        notes["verdict.points"] = (
            f"{len(plan.heldout)} of the {int(mask.sum())} held-out combinations, chosen at random"
        )
    begin = time.monotonic()
    first = sampler.draw(parts.latents[plan.rows[:BATCH]], seed)
    if n_samples > 1 and _repeats(first, plan.rows[:BATCH]):
        plan = Plan(plan.latents, plan.heldout, plan.seen, 1)
        notes["n_samples"] = "the generator draws the same image of a combination every time, so each is drawn once"
        first = sampler.draw(parts.latents[plan.rows[:BATCH]], seed)
    batches = -(-len(plan.rows) // BATCH)
    clock.expect("drawing", (time.monotonic() - begin) * (batches - 1))
    readers = reader if isinstance(reader, Readers) else ready(task, mask, reader, seed, clock)
    readers.check(task, mask)
    drawn, pictures = _drawn(sampler, plan, first, readers, task, seed, clock)
    heldout_count = len(plan.heldout) * plan.samples
    number = mask.cumsum(0) - 1  # of a combination among the held-out ones
    held = _rows(drawn, torch.arange(heldout_count), number)
    seen = _rows(drawn, torch.arange(heldout_count, len(plan.rows)), torch.arange(len(mask)))
    verdict = verdict_by_readers(held, seen, readers.tested, task.factors, pictures, mask, readers.examples, seed)
    return Diagnosis(
        factors=tuple(factor.name for factor in task.factors),
        sizes=task.sizes,
        points=int(kept.sum()),
        heldout=int(mask.sum()),
        certificate=str(certificate),
        verdict=verdict,
        error=_no_errors(),
        superposition=None,
        kernels=no_kernels(),
        complexity=None,
        layers={},
        notes=notes,
    )


def _some(mask: Bool[Tensor, "n"], most: int, rng: torch.Generator) -> Int[Tensor, "rows"]:
    rows = mask.nonzero()[:, 0]
    return rows if len(rows) <= most else rows[torch.randperm(len(rows), generator=rng)[:most]].sort().values


def _repeats(images: Images, rows: Int[Tensor, "n"]) -> bool:
    """Whether images of the same combination are all equal."""
    return all(bool((images[rows == row] == images[rows == row][:1]).all()) for row in rows.unique().tolist())


def _drawn(
    sampler: Sampler,
    plan: Plan,
    first: Images,
    readers: Readers,
    task: Examples,
    seed: int,
    clock: Clock,
) -> tuple[Drawn, Pictures]:
    """Every image drawn and read; only those that are shown are kept."""
    rows = plan.rows
    shown = torch.linspace(0, len(plan.heldout) - 1, min(SHOWN, len(plan.heldout))).round().long()
    few = min(FEW, plan.samples)
    chosen = (shown[:, None] * plan.samples + torch.arange(few)).reshape(-1)
    position = {row: place for place, row in enumerate(chosen.tolist())}
    kept = torch.zeros(len(chosen), *task.image_shape)
    read, kinds, copies = [], [], []
    step = clock.part("drawing")
    for number, some in enumerate(rows.split(BATCH)):
        images = first if number == 0 else sampler.draw(plan.latents[some], seed + number)
        read.append(readers.reader(images))
        kind, copy = readers.likeness(images)
        kinds.append(kind)
        copies.append(copy)
        for offset in range(len(images)):
            if number * BATCH + offset in position:
                kept[position[number * BATCH + offset]] = images[offset]
        step(number + 1, -(-len(rows) // BATCH))
    true = torch.stack([f.index(plan.latents[rows, axis]) for axis, f in enumerate(task.factors)], 1)
    readings = Readings(true, torch.cat(read), torch.cat(kinds), rows)
    pictures = Pictures(
        plan.latents[plan.heldout[shown]],
        kept.reshape(len(shown), few, *task.image_shape),
        chosen.reshape(len(shown), few),
    )
    return Drawn(readings, torch.cat(copies)), pictures


def _rows(drawn: Drawn, rows: Int[Tensor, "rows"], number: Int[Tensor, "combinations"]) -> Drawn:
    """Some of the images, their groups numbered so."""
    readings = drawn.readings.rows(rows)
    grouped = Readings(readings.true, readings.read, readings.likeness, number[readings.group])
    return Drawn(grouped, drawn.copies[rows])


def _no_errors() -> Errors:
    """The report where there is no true image to be far from."""
    none = dict.fromkeys([item.name for item in fields(Errors)])
    return Errors(**{**none, "map": torch.zeros(0), "maps": {}, "by_distance": {}})  # type: ignore[arg-type]
