"""What astraea offers the solvers."""

from hindsched.solvers.families.astraea.oracle import AstraeaMerged, AstraeaServers
from hindsched.solvers.families.windows.solvers import WindowSolvers

SOLVERS = WindowSolvers(AstraeaMerged, AstraeaServers)
