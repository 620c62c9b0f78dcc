"""What batchsched offers the solvers: its methods begin from a list schedule."""

from hindsched.solvers.families.batchsched.list_schedule import find_incumbent
from hindsched.solvers.families.batchsched.oracle import BatchschedMerged, BatchschedServers
from hindsched.solvers.families.windows.solvers import WindowSolvers

SOLVERS = WindowSolvers(BatchschedMerged, BatchschedServers, find_incumbent)
