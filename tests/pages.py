"""For the tests of pages: tiny runs in all states, and made-up figures and claims."""

from dataclasses import replace

import composcope as cs
from composcope.papers.forced_rendering.base import TINY
from composcope.papers.forced_rendering.study import STUDY
from composcope.runs.pipeline import run
from composcope.study import drawing
from composcope.study.judging import Judgement, PartJudgement
from composcope.study.ledger import Ledger
from composcope.study.observations import Observations
from composcope.study.panel import Panel, RenderedPanel
from composcope.study.reproduce import Reproduction
from composcope.study.request import Request
from tiny import tiny

HOSTILE = "<script>alert(1)</script>"


SEEN = tiny()
STRIPES = tiny(encoding=cs.OneHot(), sampling=cs.Stripes(bumps=9))
TURNED = tiny(task=cs.RotationTask(angles=24), holdout=cs.Interval("angle", 160, 200), encoding=cs.Circle())
UNDIAGNOSED, BROKEN, DAMAGED, FAILED, MISSING = (tiny(seed=seed) for seed in range(1, 6))


def filled(store):
    """Put runs in every state into the store: diagnosed, not diagnosed, with a torn diagnosis, damaged, failed."""
    for spec in (SEEN, STRIPES, TURNED, UNDIAGNOSED, BROKEN, DAMAGED):
        run(spec, store)
    for spec in (SEEN, STRIPES, TURNED, BROKEN):
        store[spec.run_id].measure()
    (store.folder / BROKEN.run_id / "measures" / "diagnosis.npz").write_bytes(b"torn")
    (store.folder / DAMAGED.run_id / "spec.json").write_text("{")
    store.save_failure(FAILED, f"loss is not finite {HOSTILE}", {})
    return store


def plan(preset):
    return {"seen": (SEEN,), "stripes": (STRIPES,), "more": (MISSING,)}


def panel(name, **changes):
    fields = {
        "title": f"Title of {name}",
        "see": f"What to look at in {name}.",
        "plan": plan,
        "numbers": lambda evidence: None,
        "draw": lambda numbers: None,
    }
    return Panel(name, **{**fields, **changes})


def rendered(panel, *, width=6.75, **changes):
    """A panel as if it had been drawn."""
    with drawing.style():
        picture = drawing.figure(width, 2)
        picture.subplots().plot([0, 1], [1, 0])
        png = drawing.as_bytes(picture, "png")
    fields = {"run_ids": (SEEN.run_id, STRIPES.run_id), "rows": [dict(row) for row in ROWS], "png": png}
    fields |= {"size": (width, 2.0), **changes}
    return RenderedPanel(panel.name, panel.title, panel.see, panel.no_claim, **fields)


ROWS = [
    {"code": code, "seed": seed, "error": error}
    for code, seed, error in (("bump", 0, 0.02), ("rate", 1, 0.5), ("rate", 10, 1e-4))
]


def made_up(store, judgements=None, panels=None, rendered_panels=None):
    """A reproduction with one figure that is drawn and one that is not."""
    first, second = panel("1b"), panel("2a", no_claim="it only illustrates")
    asked = (first, second) if panels is None else panels
    if rendered_panels is None:
        rendered_panels = (rendered(first), rendered(second, run_ids=(), rows=[], png=b"", missing="no runs yet: more"))
    ledger = Ledger(STUDY.name, TINY, (), tuple(claims() if judgements is None else judgements))
    observed = Observations(STUDY.name, TINY.name, (), ())
    return Reproduction(Request(STUDY, TINY, tuple(asked), ()), store, tuple(rendered_panels), ledger, observed)


HOLDS = {"reproduced": True, "not reproduced": False, "undetermined": None}


def part(outcome, values, **changes):
    low, high = (min(values), max(values)) if values else (None, None)
    mean = sum(values) / len(values) if values else None
    made = PartJudgement(
        measure="the effect",
        relation=">",
        threshold=0.5,
        reason="half of it",
        effect=mean,
        low=low,
        high=high,
        p=0.01,
        p_opposite=0.99,
        p_against=0.99,
        method="t-test",
        seeds=tuple(range(len(values))),
        values=tuple(values),
        censored={},
        excluded={},
        holds=HOLDS[outcome],
        registered=True,
    )
    return replace(made, **changes)


def claim(number, outcome, *parts, **changes):
    made = Judgement(
        number=number,
        version=1,
        statement=f"Statement number {number}.",
        source=f"Sec. {number}",
        figures=("1b",),
        label="8x8",
        outcome=outcome,
        holds=HOLDS[outcome],
        qualification="",
        note="",
        seeds=3,
        primary=parts or (part(outcome, [0.7, 0.8, 0.9]),),
        secondary=(),
    )
    return replace(made, **changes)


def claims():
    return [
        claim(1, "reproduced", note="Note on 1."),
        claim(
            2,
            "not reproduced",
            part("reproduced", [0.6, 0.7, 0.8]),
            part("not reproduced", [0.1, 0.2, 0.3], measure="the other effect"),
        ),
        claim(3, "undetermined", part("undetermined", []), figures=("2a", "9z")),
        claim(24, "reproduced"),
    ]
