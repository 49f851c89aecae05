"""The figures of the study."""

from composcope.papers.cures_beyond.data_need.drawing import draw_data_need
from composcope.papers.cures_beyond.data_need.numbers import data_need
from composcope.papers.cures_beyond.data_need.plan import every_amount
from composcope.papers.cures_beyond.drawing import draw_cells, draw_factors
from composcope.papers.cures_beyond.numbers import outcomes
from composcope.papers.cures_beyond.plan import every_cell
from composcope.study.panel import Panel

PANELS = (
    Panel(
        name="cells",
        title="Which treatment lets a decoder compose, in which world",
        see="The share of withheld images that show their own combination: the mean over seeds and its 95 % interval. "
        "The first row is the untreated control. Grey: most seeds have not learned what they saw.",
        plan=every_cell,
        numbers=outcomes,
        draw=draw_cells,
        diagnosed=False,
    ),
    Panel(
        name="factors",
        title="Which factor is right",
        see="For each factor, the share of withheld images that show its true value, with its 95 % interval over "
        "seeds. Position is to the right almost everywhere; look for the factor that stays behind.",
        plan=every_cell,
        numbers=outcomes,
        draw=draw_factors,
        diagnosed=False,
    ),
    Panel(
        name="data",
        title="How the data need grows with the number of factors",
        see="The share of withheld images that are fully right by the number of combinations shown, for two, three and "
        "four factors: the mean and a dot per seed. Open marks: most seeds have not learned what they were shown. "
        "Last, the smallest number with nine of ten right; a triangle where not even all combinations were enough.",
        plan=every_amount,
        numbers=data_need,
        draw=draw_data_need,
        no_claim="it was added after the claims were registered",
        diagnosed=False,
    ),
)
