"""batchsched (min): weighted completion of jobs that run once, in one window; (2) and (15)."""

from fractions import Fraction
from typing import Any, ClassVar

from . import reading, windows
from .exact import Data, Interval, common_step, point
from .reading import names, require

SIGNED = frozenset({"provenance"})
EQUATIONS = {
    "arrival": "(2j)", "horizon": "(2n)", "chunks": "(2g)", "no PS": "(2e)", "bandwidth": "(2i)",
    "overlap": "(2n)", "pause": "(2a)", "change": "(2a)", "ps change": "(2a)", "work": "(2f)",
    "capacity": "(2h)",
}  # fmt: skip


class Problem(windows.WindowProblem):
    """(2a)-(2o), or (15), of an instance."""

    sense = "min"
    formulations: ClassVar = {"modes": "(2)", "literal": "(2)"}
    nonanticipative = ("modes", "literal")

    def __init__(self, instance: Data, formulation: str) -> None:
        reading.natural(instance, SIGNED, "instance")
        resources, bandwidth = instance["resources"], instance["bandwidth_resource"]
        has_ps = instance["architecture"] == "parameter-server"
        require(has_ps or instance["architecture"] == "ring-allreduce", "architecture: unknown")

        def table(key: str, amounts: str) -> dict[str, tuple[Any, ...]]:
            known = zip(names(instance[key], key), instance[key], strict=True)
            return {name: tuple(item[amounts].get(r, 0) for r in resources) for name, item in known}

        at = resources.index(bandwidth)
        workers = {w: (sizes, sizes[at]) for w, sizes in table("worker_types", "demand").items()}
        sizes = table("ps_types", "demand") if has_ps else {None: (0,) * len(resources)}
        ps = {p: (z, z[at]) for p, z in sizes.items()}
        servers = table("servers", "capacity")
        rows = {"capacity": ("resource", resources)}
        equations = EQUATIONS if has_ps else EQUATIONS | {"capacity": "(15b)"}
        cluster = windows.WindowCluster(servers, workers, ps, None, rows, True, 1, equations)
        names(instance["jobs"], "jobs")
        self.step = common_step(job["weight"] for job in instance["jobs"])
        super().__init__(
            cluster, [_batchsched_job(instance, cluster, job) for job in instance["jobs"]]
        )


def _batchsched_job(instance: Data, cluster: windows.WindowCluster, job: Any) -> windows.WindowJob:
    train = dict(zip(cluster.workers, job["minibatch_slots"], strict=True))
    rings = None in cluster.ps
    update = {} if rings else dict(zip(cluster.ps, job["update_slots"], strict=True))
    weight, transfer = job["weight"], Fraction(16 * job["gradient_mb"]) / instance["slot_seconds"]
    send = {w: transfer / b for w, (_, b) in cluster.workers.items()}
    require(min([weight, *train.values()]) > 0, f"job {job['name']}: must be above 0")

    def time(w: str, p: Any, q: int, n: int) -> Any:
        """1 / rho of (1), and of (14) for Ring-AllReduce."""
        far = 0 if q else send[w]
        if rings:
            return train[w] + (job["reduce_slots"] + far) * Fraction(n - 1, n)
        return train[w] + update[p] + far

    def cost(end: int) -> Interval:
        """W (t + L): the paper's completion is one more than the last slot."""
        return point(weight * (end + 1))

    return windows.WindowJob(*windows.counted(job, 1), time, cost)
