"""What we expected, from trials with other seeds, registered before the runs that judge it."""

from collections.abc import Callable

from composcope.papers.cures_beyond.figures import Cell, behind_position, cells, fully_right, position_right
from composcope.papers.cures_beyond.treatments import BRIGHTNESS, BUMPS, CONTROL, DIGITS, SPRITES
from composcope.study.claim import Claim, Effect, Number, Part, Values, combined, difference, of_runs
from composcope.study.evidence import Evidence
from composcope.study.plan import Planner
from composcope.study.statistics import Relation

SOURCE = "our own question"
HALF = "half of the images: more are right than wrong, or fewer"
MOST = "nine of ten"
MUCH = "a difference that needs no statistics to be seen"


def _runs(world: str, treatment: str, number: Number) -> Callable[[Evidence], Values]:
    """One number of every run of a cell; none where a preset does not have the world."""
    cell = Cell(world, treatment)
    return lambda evidence: of_runs(cell, number)(evidence) if cell in evidence else {}


def _gain(world: str, treatment: str, control: str, number: Number) -> Effect:
    return difference(Cell(world, treatment), Cell(world, control), number)


def _best_of(world: str) -> Callable[[Evidence], Values]:
    """The largest share of any treatment, for seeds that have all of them."""

    def effect(evidence: Evidence) -> Values:
        own = [cell for cell in evidence if isinstance(cell, Cell) and cell.world == world]
        return combined(own, fully_right, lambda *row: max(row))(evidence) if own else {}

    return effect


def _fully(world: str, treatment: str, relation: Relation, threshold: float, said: str = "", before: str = "") -> Part:
    """The share of fully right images of a cell, beside half of the images or nine of ten."""
    measure = f"{before}share of fully right images, {said or treatment}"
    reason = {0.5: HALF, 0.9: MOST}[threshold]
    return Part(measure, _runs(world, treatment, fully_right), relation, threshold, reason)


def _of(*treatments: str, world: str | None = None) -> Planner:
    return lambda preset: cells(preset, world, treatments or None)


CLAIMS = (
    Claim(
        number=1,
        statement="A decoder that is shown each value of each factor alone places what it draws, in every world with "
        "positions; without that it does not.",
        source=SOURCE,
        figures=("factors",),
        plan=_of("single factors"),
        primary=tuple(
            Part(
                f"{world}: share with the right x or y, single factors minus untreated",
                _gain(world, "single factors", CONTROL, position_right),
                ">",
                0.3,
                MUCH,
            )
            for world in (BUMPS, BRIGHTNESS, SPRITES)
        ),
        secondary=tuple(
            Part(
                f"{world}: share with the right x or y, single factors",
                _runs(world, "single factors", position_right),
                ">",
                0.9,
                MOST,
            )
            for world in (BUMPS, BRIGHTNESS, SPRITES)
        ),
    ),
    Claim(
        number=2,
        statement="Where it is cured by data, position is cured more than shape or brightness.",
        source=SOURCE,
        figures=("factors",),
        plan=_of("all proper subsets"),
        primary=(
            Part(
                f"{SPRITES}: share with the right shape minus the right position, all proper subsets",
                _runs(SPRITES, "all proper subsets", behind_position("shape")),
                "<",
                0.0,
                "0 means that both are cured alike",
            ),
            Part(
                f"{BRIGHTNESS}: share with the right brightness minus the right position, all proper subsets",
                _runs(BRIGHTNESS, "all proper subsets", behind_position("brightness")),
                "<",
                0.0,
                "0 means that both are cured alike",
            ),
        ),
    ),
    Claim(
        number=3,
        statement="Nothing that was tried lets a decoder draw digits at angles that they were not seen at.",
        source=SOURCE,
        figures=("cells",),
        plan=_of(world=DIGITS),
        primary=(
            Part("share of fully right images, the best treatment of each seed", _best_of(DIGITS), "<", 0.5, HALF),
        ),
    ),
    Claim(
        number=4,
        statement="Flow matching fails like a decoder, and is cured by the same data.",
        source=SOURCE,
        figures=("cells",),
        plan=_of("flow matching", "flow matching, single factors", world=BUMPS),
        primary=(
            _fully(BUMPS, "flow matching", "<", 0.5),
            _fully(BUMPS, "flow matching, single factors", ">", 0.9, "flow matching with single factors"),
        ),
    ),
    Claim(
        number=5,
        statement="Telling the U-Net where each pixel is removes most of flow matching's failure.",
        source=SOURCE,
        figures=("cells",),
        plan=_of("flow matching", "flow matching, coordinates", world=BUMPS),
        primary=(
            Part(
                "share of fully right images, with coordinates minus without",
                _gain(BUMPS, "flow matching, coordinates", "flow matching", fully_right),
                ">",
                0.5,
                HALF,
            ),
        ),
    ),
    Claim(
        number=6,
        statement="A product of factors composes position and brightness once it is shown single factors, and not "
        "without.",
        source=SOURCE,
        figures=("cells",),
        plan=_of("product", "product, single factors", world=BRIGHTNESS),
        primary=(
            _fully(BRIGHTNESS, "product, single factors", ">", 0.9, "product with single factors"),
            _fully(BRIGHTNESS, "product", "<", 0.5, "product alone"),
        ),
    ),
    Claim(
        number=7,
        statement="With a consistency loss on withheld codes, more withheld images are fully right than wrong.",
        source=SOURCE,
        figures=("cells",),
        plan=_of("consistency"),
        primary=tuple(_fully(world, "consistency", ">", 0.5, before=f"{world}: ") for world in (BUMPS, SPRITES)),
        note="The loss is given the withheld codes and a reader made from seen images; the other treatments are not.",
    ),
    Claim(
        number=8,
        statement="Neither additive decoders nor the penalty on interactions compose position.",
        source=SOURCE,
        figures=("cells",),
        plan=_of("additive", "interaction penalty", world=BUMPS),
        primary=(_fully(BUMPS, "additive", "<", 0.5), _fully(BUMPS, "interaction penalty", "<", 0.5)),
    ),
)
