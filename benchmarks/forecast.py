"""How well forecasts agree with training: on designs that were not used for choosing the method, and on stored runs.

For every run: the forecast from its spec alone, and the verdict on what it draws. "Composes?" is whether that is what
more held-out images do than anything else. Runs whose forecast abstains, and runs that get no verdict since they have
not learned what they saw, are counted apart. Runs of the new designs are trained if the store lacks them (24 runs,
about 15 s of CPU time each).

    python benchmarks/forecast.py --store /tmp/forecast --out results/forecast
    python benchmarks/forecast.py --runs out/store --out results/forecast
    python benchmarks/forecast.py --worlds out/store --out results/forecast   # of `reproduce --study cures-beyond`
"""

import argparse
import csv
import io
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from forecast_designs import NEW

import composcope as cs
from composcope.display import aligned
from composcope.files import write_atomically
from composcope.forecasts import Prediction
from composcope.forecasts.forecast import reasons_to_abstain
from composcope.verdict import NOT_LEARNED
from composcope.verdict.verdict import kind_of

CHOSEN_ON, TRIED_ON = (16,), (10, 15, 20, 28)
COLUMNS = ["design", "runs", "abstains", "no verdict", "compose", "right", "in place", "forecast", "error"]
COMPOSED = ["composed", "forecast", "error"]


def compared(design: str, run: cs.Run, verdict: Any, accuracy: float | None) -> dict[str, Any]:
    """One run's forecast beside its outcome, as a row of the file."""
    start = time.process_time()
    made = cs.forecast(run.spec)
    seconds = time.process_time() - start
    other = next(prediction for name, prediction in made.predictions.items() if name != made.method)
    return {
        "design": design,
        "run_id": run.run_id,
        "polarity": getattr(run.spec.task, "polarity", ""),
        "seed": run.spec.seed,
        "abstains": "; ".join(made.abstains),
        "method": made.method,
        "r2": made.r2,
        "kind": verdict["kind"],
        "heldout_kind": kind_of(verdict["shares"]),
        "forecast_kind": made.prediction.kind,
        "composed": verdict["shares"]["composer"],
        "score": verdict["score"],
        "forecast_score": made.prediction.score,
        "accuracy": accuracy,
        "forecast_accuracy": made.prediction.accuracy,
        "right": int(composes(made.prediction) == (verdict["kind"] == "composes")),
        "right_heldout": int(composes(made.prediction) == (kind_of(verdict["shares"]) == "composes")),
        "other_right": int(composes(other) == (verdict["kind"] == "composes")),
        "forecast_seconds": round(seconds, 2),
        "training_seconds": round(run.seconds, 1),
    }


def composes(prediction: Prediction) -> bool:
    return prediction.kind == "composes"


def new_runs(store: cs.Store) -> Iterable[dict[str, Any]]:
    """The designs of `forecast_designs.py`, trained if necessary."""
    for design, setting in NEW.items():
        for spec in setting.specs():
            run = cs.run(spec, store)
            verdict = run.diagnose(only="verdict").verdict
            assert verdict is not None
            outcome = {"kind": verdict.kind, "score": verdict.score, "shares": verdict.shares}
            yield compared(design, run, outcome, run.error["accuracy"])


def stored_runs(store: cs.Store, worlds: bool = False) -> Iterable[dict[str, Any]]:
    """Every finished run of a store that draws images and has held-out combinations; judged if it was not.

    - `worlds`: group by what is drawn; decoders and losses with which every forecast abstains are left out.
    """
    for record in store.records():
        if record.status != "done":
            continue
        run = store[record.run_id]
        if not run.draws or not run.split.mask.any() or len(run.spec.task.factors) < 2:
            continue
        if worlds and (reasons_to_abstain(run.spec, fit=1.0) or _shown_twice(run.spec)):
            continue
        outcome = record.measures.get("diagnosis", {}).get("verdict") or run.verdict
        group = _world(run.spec) if worlds else _group(run.spec)
        yield compared(group, run, outcome, record.measures["error"].get("accuracy"))


def _shown_twice(spec: cs.Spec) -> bool:
    """Of two factors, all proper subsets are the single factors: a study that has both has the same run twice."""
    return len(spec.task.factors) == 2 and getattr(spec.sampling, "subsets", "single") != "single"


def _world(spec: cs.Spec) -> str:
    """What is drawn and what is shown."""
    factors = ", ".join(factor.name for factor in spec.task.factors)
    shown = getattr(spec.sampling, "subsets", "") or "combinations"
    return f"{spec.task.kind}: {factors}; {shown}"


def _group(spec: cs.Spec) -> str:
    """A stored run's design in words: its size and what that was used for, decoder, code and training data."""
    size = spec.task.image_shape[1]
    used = "chosen on" if size in CHOSEN_ON else "tried on" if size in TRIED_ON else "new"
    decoder, code = type(spec.decoder).__name__, type(spec.encoding).__name__
    return f"{size} ({used}), {decoder}, {code}, {spec.sampling.kind}{', penalties' if spec.penalties else ''}"


def summed_up(rows: Sequence[dict[str, Any]], composed: bool = False) -> list[list[str]]:
    """One line per design, and one of all designs; `composed`: also the share of held-out images that are composed."""
    designs = list(dict.fromkeys(row["design"] for row in rows))
    if len(rows) > len(designs) * 2:  # a store's, whose order means nothing
        designs.sort()
    groups = {design: [row for row in rows if row["design"] == design] for design in designs} | {"all": list(rows)}
    lines = [[*_line(name, group), *(_composed(group) if composed else [])] for name, group in groups.items()]
    return [[*COLUMNS, *(COMPOSED if composed else [])], *lines]


def _composed(rows: Sequence[dict[str, Any]]) -> list[str]:
    answered = [row for row in rows if not row["abstains"]]
    measured, forecast = ([row[key] for row in answered] for key in ("composed", "forecast_score"))
    errors = [abs(first - second) for first, second in zip(measured, forecast, strict=True)]
    return [f"{_mean(values):.2f}" for values in (measured, forecast, errors)] if answered else [*"---"]


def _line(name: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    answered = [row for row in rows if not row["abstains"]]
    judged = [row for row in answered if row["kind"] != NOT_LEARNED]
    placed = [row for row in answered if row["accuracy"] is not None]
    measured, forecast = ([row[key] for row in placed] for key in ("accuracy", "forecast_accuracy"))
    return [
        name,
        str(len(rows)),
        str(len(rows) - len(answered)),
        str(len(answered) - len(judged)),
        str(sum(row["kind"] == "composes" for row in judged)) if judged else "-",
        f"{sum(row['right'] for row in judged)} of {len(judged)}" if judged else "-",
        *([f"{_mean(values):.2f}" for values in (measured, forecast, _errors(placed))] if placed else "---"),
    ]


def _errors(rows: Sequence[dict[str, Any]]) -> list[float]:
    return [abs(row["accuracy"] - row["forecast_accuracy"]) for row in rows]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def report(rows: Sequence[dict[str, Any]], composed: bool = False) -> str:
    """The table, how often each answer is right, and what forecasts cost."""
    answered = [row for row in rows if not row["abstains"]]
    judged = [row for row in answered if row["kind"] != NOT_LEARNED]
    lines = [*aligned(summed_up(rows, composed)), "", '"right": agreement on "composes?" among runs with a verdict']
    for says, answer in (("yes", True), ("no", False)):
        own = [row for row in judged if (row["forecast_kind"] == "composes") == answer]
        lines.append(f'  "{says}" is right in {sum(row["right"] for row in own)} of {len(own)}')
    positive = sum(row["kind"] == "composes" for row in judged)
    lines.append(f"  the more common answer is right in {max(positive, len(judged) - positive)} of {len(judged)}")
    every = sum(row["right"] for row in answered)
    lines.append(f"  with runs that have no verdict counted as not composing: {every} of {len(answered)}")
    alone = sum(row["right_heldout"] for row in answered)
    positive = sum(row["heldout_kind"] == "composes" for row in answered)
    lines.append(
        f"  by the held-out images of all runs, whatever the seen ones are: {alone} of {len(answered)} "
        f"(the more common answer: {max(positive, len(answered) - positive)})"
    )
    placed = [row for row in answered if row["accuracy"] is not None]
    centre = _mean([row["accuracy"] for row in placed])
    spread = _mean([abs(row["accuracy"] - centre) for row in placed])
    lines += [
        '"in place": mean share of held-out images within 1 pixel, measured and forecast; "error": mean difference',
        f"  the mean over all runs instead of a forecast would have an error of {spread:.2f}",
    ]
    if composed:
        errors = [abs(row["composed"] - row["forecast_score"]) for row in answered]
        centre = _mean([row["composed"] for row in answered])
        spread = _mean([abs(row["composed"] - centre) for row in answered])
        lines += [
            '"composed": mean share of held-out images that are fully right, measured and forecast; "error": as above',
            f"  the mean over all runs would have an error of {spread:.2f}, forecasts have {_mean(errors):.2f}",
        ]
    cost, training = (sum(row[f"{what}_seconds"] for row in rows) for what in ("forecast", "training"))
    lines.append(f"{cost:.0f} s of CPU time for the forecasts, {training:.0f} s for training ({cost / training:.1%})")
    return "\n".join(lines) + "\n"


def as_csv(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()})
    return text.getvalue().encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, help="where runs of the new designs are, or are to be trained")
    parser.add_argument("--runs", type=Path, help="a store of runs to compare with instead")
    parser.add_argument("--worlds", type=Path, help="the same, by what is drawn")
    parser.add_argument("--out", type=Path, help="folder for the table (.txt) and one row per run (.csv)")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    given = [name for name in ("store", "runs", "worlds") if getattr(chosen, name) is not None]
    if len(given) != 1:
        parser.error("give one of --store, --runs and --worlds")
    (source,) = given
    store, by_world = cs.Store(getattr(chosen, source)), source == "worlds"
    name = {"store": "new_designs", "runs": "stored_runs", "worlds": "worlds"}[source]
    rows: list[dict[str, Any]] = []
    for row in new_runs(store) if source == "store" else stored_runs(store, by_world):
        rows.append(row)
        print(f"{len(rows)}: {row['design']}", file=sys.stderr, flush=True)
    print(report(rows, by_world), end="")
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        write_atomically(chosen.out / f"{name}.txt", report(rows, by_world).encode())
        write_atomically(chosen.out / f"{name}.csv", as_csv(rows))


if __name__ == "__main__":
    main()
