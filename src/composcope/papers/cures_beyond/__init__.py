"""A study of our own: which cures carry beyond a bump with two coordinates?

treatments.py   what is drawn and what is held out; what is done about it: data, decoder or loss
figures.py      every treatment in every world, with the same number of steps; what each decoder gets right
data_need.py    a further figure: how many combinations must be shown, by the number of factors
drawing.py      the figures drawn
claims.py       what we expected, registered before the runs that judge it
"""

from composcope.papers.cures_beyond.study import STUDY

__all__ = ["STUDY"]
