"""The names under which notebooks find the pictures: ``hs.plot.gantt(solution)`` and so on."""

from hindsched.analysis.plots.gantt import plot_gantt as gantt
from hindsched.analysis.plots.gaps import plot_gap as gap
from hindsched.analysis.plots.prices import plot_prices as prices
from hindsched.analysis.plots.ratios import plot_ratios as ratios
from hindsched.analysis.plots.style import save
from hindsched.analysis.plots.utilisation import plot_utilisation as utilisation

__all__ = ["gantt", "gap", "prices", "ratios", "save", "utilisation"]
