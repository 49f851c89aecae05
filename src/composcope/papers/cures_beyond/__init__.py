"""A study of our own: which cures carry beyond a bump with two coordinates?

worlds.py       what is drawn and what is withheld
treatments.py   what is done about it: data, decoder or loss
plan.py         every treatment in every world, with the same number of steps
numbers.py      what each decoder gets right on withheld combinations, factor by factor
drawing.py      the two figures
data_need/      a further figure: how many combinations must be shown, by the number of factors
claims.py       what we expected, registered before the runs that judge it
"""

from composcope.papers.cures_beyond.study import STUDY

__all__ = ["STUDY"]
