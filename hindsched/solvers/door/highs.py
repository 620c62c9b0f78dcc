"""HiGHS by arrays: one object a program, interruptible, with every option checked.

The bridge goes past Pyomo's own interface because that one has no start for mixed-integer programs,
notices Ctrl-C only when the solve has ended, and is several times slower on large models.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csc_array, diags_array

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Answer, Progress, Status, StoppedBy
from hindsched.solvers.door.standard_form import (
    MODERATE,
    LinearProgram,
    Scaling,
    objective_factor,
    to_one,
)
from hindsched.solvers.door.work import catch_interrupt, count_work, is_counted, now, units_of

WAIT_SECONDS = 0.05  # how often the waiting thread looks for an interrupt and news to report
GRACE_SECONDS = 1.0
"""Overrun of the time limit after which HiGHS is interrupted rather than trusted to stop."""
PIVOTS_A_UNIT = 100  # simplex iterations that count as a unit of work
INLINE_NONZEROS = 20_000
"""Continuous programs below this size run in the caller's thread: they end within milliseconds."""

UNSOUND_RELEASES = ((1, 16),)
"""HiGHS 1.16.0 cuts off integer optima when it is given a start and presolves, whatever rules are
off: it called a worse point optimal on dozens of the tests' tiny programs, 1.15.1 on none."""
UNSOUND_PRESOLVE_RULES = (1 << 12) | (1 << 13)
"""Aggregator, and parallel rows and columns: together they cut off the optimum of small integer
programs in HiGHS 1.15.1, which then calls a worse point optimal (5 of 200 tiny oasis instances)."""
FEW_INTEGERS = 250
"""Integer columns up to which HiGHS makes do with one kind of search in sub-programs, RINS, and
does not begin again: else each takes as long as all branching (a half to two thirds of the time of
such programs). Without any it branches ten times as often, for want of a good point."""
SPARED_SEARCHES = (  # what it does without there
    "mip_allow_restart", "mip_heuristic_run_feasibility_jump", "mip_heuristic_run_rens",
    "mip_heuristic_run_root_reduced_cost",
)  # fmt: skip

_MODEL = highspy.HighsModelStatus
_STATUS = {
    _MODEL.kOptimal: (Status.OPTIMAL, StoppedBy.GAP),
    _MODEL.kInfeasible: (Status.INFEASIBLE, StoppedBy.INFEASIBLE),
    _MODEL.kUnbounded: (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
    _MODEL.kUnboundedOrInfeasible: (Status.UNBOUNDED, StoppedBy.UNBOUNDED),
    _MODEL.kTimeLimit: (Status.NO_SOLUTION, StoppedBy.TIME_LIMIT),
    _MODEL.kIterationLimit: (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    _MODEL.kSolutionLimit: (Status.NO_SOLUTION, StoppedBy.ITERATION_LIMIT),
    _MODEL.kInterrupt: (Status.NO_SOLUTION, StoppedBy.INTERRUPTED),
}
_I32 = np.int32


class HighsProgram:
    """A linear program inside HiGHS."""

    def __init__(self, program: LinearProgram, options: SolveOptions) -> None:
        if (highspy.HIGHS_VERSION_MAJOR, highspy.HIGHS_VERSION_MINOR) in UNSOUND_RELEASES:
            raise SolveFailed(
                f"HiGHS {highspy.Highs().version()} cuts off integer optima when it is given a"
                " start: install another release (pip install 'highspy!=1.16.*')"
            )
        self.program, self._options = program, options
        self.highs = highspy.Highs()
        self._stop = threading.Event()
        self._progress: tuple[float | None, float | None, float, str] | None = None
        self._set_options(options)
        self._pass_model()

    def _set_options(self, options: SolveOptions) -> None:
        gap = options.gap
        settings: dict[str, Any] = {
            "output_flag": False,
            # HiGHS measures the gap relative to the incumbent, the package relative to the bound.
            "mip_rel_gap": gap / (1.0 + gap),
            "mip_abs_gap": 1e-9,
            "threads": options.solver_threads,
            "random_seed": options.seed % 2**31,
            "mip_min_logging_interval": 1.0,
            "presolve_rule_off": UNSOUND_PRESOLVE_RULES if self.program.is_mixed_integer else 0,
        }
        for name, value in settings.items():
            if self.highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolveFailed(f"HiGHS {self.highs.version()} refuses {name} = {value}")
        self._named = frozenset(options.solver_options)
        for name, value in options.solver_options.items():
            self._set_named_option(name, value)

    def _set_named_option(self, name: str, value: Any) -> None:
        where = f"solver_options.{name}"
        if name == "time_limit":  # set anew for every run, so this one would be lost
            raise InputError(where, value, "is the option time_limit of the solve itself")
        known, kind = self.highs.getOptionType(name)
        if known != highspy.HighsStatus.kOk:
            raise InputError(where, value, "must be an option that HiGHS knows")
        if kind == highspy.HighsOptionType.kDouble and type(value) is int:
            value = float(value)
        try:
            taken = self.highs.setOptionValue(name, value)
        except TypeError:
            taken = highspy.HighsStatus.kError
        if taken != highspy.HighsStatus.kOk:
            raise InputError(where, value, "must be a value that HiGHS takes for this option")

    def _pass_model(self) -> None:
        lp = self.program
        scaling = self._scaling = Scaling.of(lp)
        entries = lp.matrix
        if not ((scaling.rows == 1).all() and (scaling.columns == 1).all()):
            entries = csc_array(diags_array(scaling.rows) @ entries @ diags_array(scaling.columns))
        status = self.highs.passModel(
            len(lp.columns), len(lp.rows), entries.data.size, 1, 1, lp.offset * scaling.objective,
            lp.cost * scaling.columns * scaling.objective,
            lp.lower / scaling.columns, lp.upper / scaling.columns,
            lp.row_lower * scaling.rows, lp.row_upper * scaling.rows,
            entries.indptr.astype(_I32), entries.indices.astype(_I32), entries.data.astype(float),
            lp.integer.astype(_I32),
        )  # fmt: skip
        if status == highspy.HighsStatus.kError:
            raise SolveFailed("HiGHS refuses the model")
        if lp.is_mixed_integer:
            self._set_unnamed(dict.fromkeys(SPARED_SEARCHES, int(lp.integer.sum()) > FEW_INTEGERS))

    def _set_unnamed(self, values: Mapping[str, bool | int | str]) -> None:
        """Set options but those that the caller named."""
        for name, value in values.items():
            if name not in self._named:
                self.highs.setOptionValue(name, value)

    def set_start(self, index: Any, values: Floats) -> None:
        """Give values to some or all columns as a start for the mixed-integer search."""
        values = values / self._scaling.columns[index]
        if len(index) == len(self.program.columns):
            solution = highspy.HighsSolution()
            full = np.empty(len(index))
            full[index] = values
            solution.col_value = full.tolist()
            self.highs.setSolution(solution)
        elif len(index):
            self.highs.setSolution(len(index), np.asarray(index, dtype=_I32), values)

    def turn_to(self, program: LinearProgram, point: Floats, size: float) -> None:
        """Go on from a point with another objective, the old one being the new program's last row.

        `size` is that of the row's terms at the point.
        """
        columns = self._scaling.columns
        row = program.matrix[[-1]].tocsr()
        entries = row.data * columns[row.indices]
        largest = np.abs(entries).max(initial=0.0)
        factor = float(to_one(np.array([max(size, MODERATE[0] * largest)]))[0])
        self.highs.addRow(
            float(program.row_lower[-1]) * factor, float(program.row_upper[-1]) * factor,
            row.nnz, row.indices.astype(_I32), entries * factor,
        )  # fmt: skip
        objective = objective_factor(columns * program.cost)
        every = np.arange(columns.size, dtype=_I32)
        self.highs.changeColsCost(columns.size, every, program.cost * columns * objective)
        self.highs.changeObjectiveOffset(0.0)
        rows = np.append(self._scaling.rows, factor)
        self.program, self._scaling = program, Scaling(rows, columns, objective)
        self.set_start(every, point)

    def solve(self, time_limit: float | None = None, on_progress: Progress | None = None) -> Answer:
        """Run for at most so many seconds and read what HiGHS says.

        `on_progress` is called from the waiting thread with bound and objective of the minimised
        form.
        """
        self._run(time_limit, on_progress)
        return self._read(self.highs.getModelStatus())

    def _run(self, time_limit: float | None, on_progress: Progress | None) -> None:
        if not is_counted():
            self._run_for(time_limit, on_progress)
            return
        units = highspy.kHighsIInf if time_limit is None else units_of(time_limit)
        self.highs.setOptionValue("mip_max_nodes", units)
        self._run_for(None if units or not self.program.is_mixed_integer else 0.0, on_progress)
        info = self.highs.getInfo()
        pivots = max(0, int(info.simplex_iteration_count))
        count_work(1 + max(0, int(info.mip_node_count)) + pivots // PIVOTS_A_UNIT)

    def _run_for(self, time_limit: float | None, on_progress: Progress | None) -> None:
        limit = highspy.kHighsInf if time_limit is None else time_limit
        self.highs.setOptionValue("time_limit", limit)
        self._stop.clear()
        lp = self.program
        patient = time_limit is None or time_limit >= GRACE_SECONDS
        if not lp.is_mixed_integer and lp.matrix.data.size < INLINE_NONZEROS and patient:
            # on one core: this thread's scheduler of HiGHS refuses another number later
            threads = self.highs.getOptionValue("threads")[1]
            self.highs.setOptionValue("threads", 1)
            self.highs.run()
            self.highs.setOptionValue("threads", threads)
            return
        self._progress = None
        sources = self.highs.cbMipImprovingSolution, self.highs.cbMipLogging
        heard = sources if on_progress is not None else ()
        for source in heard:
            source.subscribe(self._record_progress)
        try:
            self._run_in_thread(time_limit, on_progress)
        finally:
            for source in heard:
                source.unsubscribe(self._record_progress)

    def _run_in_thread(self, time_limit: float | None, on_progress: Progress | None) -> None:
        """Run beside the caller, in whose thread a Ctrl-C would wait for HiGHS' next callback.

        The thread is a daemon, so that a second Ctrl-C ends the process whatever HiGHS does; its
        scheduler ends with it.
        """
        stop = Stop(self._stop)
        stop.after(None if time_limit is None else time_limit + GRACE_SECONDS)
        stop.listen(self.highs)
        failures: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                self.highs.run()
            except BaseException as error:
                failures.append(error)
            finally:
                done.set()

        with catch_interrupt() as interrupted:
            thread = threading.Thread(target=work, name="highs", daemon=True)
            thread.start()
            try:
                while not done.wait(WAIT_SECONDS):
                    if interrupted.is_set():
                        self._stop.set()
                    self._report(on_progress)
            except BaseException:
                self._stop.set()
                thread.join(GRACE_SECONDS)
                raise
            thread.join()
        if failures:
            raise SolveFailed(f"HiGHS raised {failures[0]!r}") from failures[0]

    def _record_progress(self, event: Any) -> None:
        data, factor = event.data_out, self._scaling.objective
        bound, objective = (
            float(value) / factor if abs(value) < highspy.kHighsInf else None
            for value in (data.mip_dual_bound, data.mip_primal_bound)
        )
        self._progress = bound, objective, float(data.running_time), f"{data.mip_node_count} nodes"

    def _report(self, on_progress: Progress | None) -> None:
        progress, self._progress = self._progress, None
        if on_progress is not None and progress is not None:
            on_progress(*progress)

    def _read(self, model_status: Any) -> Answer:
        info, scaling = self.highs.getInfo(), self._scaling
        status, stopped_by = _STATUS.get(model_status, (Status.FAILED, StoppedBy.ERROR))
        if stopped_by is StoppedBy.INTERRUPTED and not self._stop.is_set():
            stopped_by = StoppedBy.TIME_LIMIT
        mixed_integer = self.program.is_mixed_integer
        solution = self.highs.getSolution()
        says_feasible = info.primal_solution_status == int(
            highspy.SolutionStatus.kSolutionStatusFeasible
        )
        point = None
        if says_feasible and status not in (Status.INFEASIBLE, Status.UNBOUNDED):
            point = np.array(solution.col_value, dtype=float) * scaling.columns
        if point is not None and status is Status.NO_SOLUTION:
            status = Status.FEASIBLE
        bound = None
        if mixed_integer and status not in (Status.INFEASIBLE, Status.FAILED):
            bound = info.mip_dual_bound if abs(info.mip_dual_bound) < highspy.kHighsInf else None
        elif status is Status.OPTIMAL:
            bound = info.objective_function_value
        has_duals = not mixed_integer and status is Status.OPTIMAL and solution.dual_valid
        details = {"model_status": self.highs.modelStatusToString(model_status)}
        if mixed_integer:
            details["nodes"] = max(0, int(info.mip_node_count))
        iterations = (
            info.simplex_iteration_count, info.ipm_iteration_count,
            info.crossover_iteration_count, info.pdlp_iteration_count,
        )  # fmt: skip
        details["iterations"] = sum(max(0, int(count)) for count in iterations)
        rows = np.array(solution.row_dual) * scaling.rows / scaling.objective if has_duals else None
        columns = (
            np.array(solution.col_dual) / scaling.columns / scaling.objective if has_duals else None
        )
        bound = None if bound is None else float(bound) / scaling.objective
        backend = f"highs {self.highs.version()}"
        return Answer(status, stopped_by, point, bound, rows, columns, backend, details)


class Stop:
    """Tells HiGHS whether to go on, until an event is set or a time is over."""

    def __init__(self, interrupted: threading.Event) -> None:
        self._interrupted, self._deadline = interrupted, math.inf

    def after(self, seconds: float | None) -> None:
        """End solves so many seconds from now; where work is counted no clock ends any."""
        late = math.inf if seconds is None or is_counted() else now() + max(seconds, 0.0)
        self._deadline = late

    def listen(self, highs: highspy.Highs) -> None:
        """Let HiGHS ask at every pivot, whatever algorithm it runs."""
        for source in (highs.cbSimplexInterrupt, highs.cbIpmInterrupt, highs.cbMipInterrupt):
            source.subscribe(self._answer)

    def _answer(self, event: highspy.highs.HighsCallbackEvent) -> None:
        # no is said too: HiGHS keeps its last answer for the next run
        event.interrupt(self._interrupted.is_set() or now() > self._deadline)
