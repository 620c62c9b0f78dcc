"""Random edgecloud instances with the settings of Section V, and the mapping from a trace.

Settings that the paper states are its own; those it leaves open (servers' sizes follow its trace's
two machine shapes; arrivals; epochs and minibatch times in the testbed's units) are settings too.
A slot is one hour. One number fixes a setting, two numbers are a range drawn uniformly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hindsched.errors import InputError
from hindsched.instances.base import Count, Instance, NonNegative, Positive, PositiveCount
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.instances.generators import ranges
from hindsched.instances.generators.ranges import Choices, Draws, Span, arrival_slots, rounded
from hindsched.instances.generators.registry import FamilyGenerator, suites_of
from hindsched.json_types import Draft

if TYPE_CHECKING:
    from hindsched.instances.traces.table import TraceTable

MODELS = ((27, 58), (27, 58), (115, 58), (115, 58), (60, 58), (60, 58))
"""Table II: data chunks and mini-batches a chunk of ResNet-50 and -101, GoogLeNet, LeNet, AlexNet
and Inception-BN."""
SECONDS = 3600  # length of a slot (Section V-A)


class EdgecloudSettings(ranges.Settings):
    """Settings of `generate`; the defaults are the preset ``paper``, Section V-A's simulator."""

    servers: Count = 100
    jobs: Count = 300
    worker_types: PositiveCount = 8
    ps_types: PositiveCount = 8
    epochs: Span = (20, 60)
    minibatch_hours: Span = (0.001, 0.05)
    update_ms: Span = (10, 100)
    gradient_mb: Span = (30, 575)
    bandwidth_mbps: Span = (100, 5120)
    edge_upload: Span = (1, 4)  # slots to upload a chunk
    cloud_upload: Span = (10, 15)
    # not stated by the paper
    horizon: PositiveCount = 100
    burst: NonNegative = 0.5  # deviation of the logarithm of the slots' rates
    workers: Choices = (2, 8)  # shapes of Philly's machines
    ps: Span = (4, 24)  # of a server
    chunks: Span | None = None  # None: Table II, also of the next
    minibatches: Span | None = None
    requested_workers: Choices = (1, 1, 1, 1, 2, 4, 8)  # GPUs of Philly's jobs
    minibatch_scale: NonNegative = 1.0  # a factor on `minibatch_hours`
    cloud_workers: Count | None = None  # None: without limit; 0: no cloud
    storage_gb: Span | None = None
    chunk_gb: Span | None = None


PRESETS: dict[str, Draft] = {
    "paper": EdgecloudSettings.values(),
    # Eight edge machines and the cloud, two worker types (one with a GPU, one without: a worker of
    # each a machine), one PS type, Table II. Its minibatch times are not stated; the scale makes
    # jobs last hours, as a small part of a data set does.
    "testbed": EdgecloudSettings.values(
        servers=8, jobs=30, worker_types=2, ps_types=1, workers=[2], ps=(6, 6),
        minibatch_scale=0.05, horizon=48,
    ),
    # Within reach of an exact optimum.
    "small": EdgecloudSettings.values(
        servers=3, jobs=6, worker_types=2, ps_types=1, workers=[1, 2], ps=(1, 2), chunks=(1, 4),
        minibatches=1, epochs=1, minibatch_hours=(1.0, 4.0), edge_upload=(1, 3),
        cloud_upload=(6, 9), horizon=10,
    ),
}  # fmt: skip


def generate(preset: str = "small", seed: int = 0, **settings: object) -> Instance:
    """Generate a random instance from a preset, a seed and settings of `EdgecloudSettings`."""
    s = EdgecloudSettings.of(PRESETS[preset], settings)
    arrivals = arrival_slots(Draws(seed, "arrivals"), s.jobs, s.horizon, burst=s.burst)
    data = _edgecloud_data(preset, preset, seed, s, arrivals, [None] * s.jobs)
    origin = {"generator": "edgecloud", "preset": preset, "seed": seed, "settings": s.changed()}
    return EdgecloudInstance.parse({**data, "provenance": origin})


class TraceSettings(EdgecloudSettings, ranges.RowSettings):
    """Settings of `from_trace`, beside those of a preset; the horizon follows from the arrivals."""

    preset: str = "paper"
    slot_seconds: Positive = SECONDS


def from_trace(
    table: TraceTable, *, jobs: int = 300, seed: int = 0, preset: str = "paper", **settings: object
) -> Instance:
    """Make an instance whose jobs arrive as in a cluster trace, with settings of `TraceSettings`.

    Submissions become arrivals and GPUs requested workers, as in Section V-A; all else is drawn.
    """
    s = TraceSettings.of(PRESETS[preset], {**settings, "jobs": jobs})
    rows = ranges.take_rows(table, jobs, s)
    slots = ranges.arrivals_of(rows, s.slot_seconds)
    s = TraceSettings.of(PRESETS[preset], {**settings, "jobs": jobs, "horizon": slots[-1]})
    data = _edgecloud_data(preset, f"{preset}-trace", seed, s, slots, [row["gpus"] for row in rows])
    data["slot_seconds"] = s.slot_seconds
    return ranges.traced(EdgecloudInstance, data, rows, table, seed, s, preset=preset)


def _edgecloud_data(
    preset: str,
    word: str,
    seed: int,
    s: EdgecloudSettings,
    arrivals: Sequence[int],
    requested: Sequence[int | None],
) -> Draft:
    """The file of an instance whose jobs arrive in these slots, without its provenance."""
    servers = [_edge_server(preset, seed, s, index) for index in range(1, s.servers + 1)]
    if s.cloud_workers == 0:
        _cover_types(servers, s.worker_types)
    cloud: Draft = {"name": "cloud"}
    if s.cloud_workers is not None:
        kinds = [f"t{k + 1}" for k in range(s.worker_types)]
        cloud["workers"] = dict.fromkeys(kinds, s.cloud_workers)
    return {
        "name": f"edgecloud-{word}-h{len(servers)}-j{len(arrivals)}-s{seed}",
        "horizon": s.horizon,
        "slot_seconds": SECONDS,
        "servers": servers,
        "cloud": cloud,
        "jobs": [
            _edgecloud_job(seed, s, f"j{number}", slot, count)
            for number, (slot, count) in enumerate(zip(arrivals, requested, strict=True), start=1)
        ],
    }


def _edge_server(preset: str, seed: int, s: EdgecloudSettings, index: int) -> Draft:
    draws = Draws(seed, f"server {index}")
    count = draws.choice(s.workers)
    if preset == "testbed":
        workers = [f"t{1 + number % s.worker_types}" for number in range(count)]
    else:
        workers = [f"t{draws.integer(1, s.worker_types)}" for _ in range(count)]
    ps = [f"p{draws.integer(1, s.ps_types)}" for _ in range(draws.integer(*s.ps))]
    server: Draft = {"name": f"s{index}", "workers": workers, "ps": ps}
    if s.storage_gb is not None:
        server["storage_gb"] = draws.uniform(*s.storage_gb)
    return server


def _cover_types(servers: list[Draft], types: int) -> None:
    """Without a cloud every type needs a worker: the first workers take the missing types."""
    present = {kind for server in servers for kind in server["workers"]}
    missing = [f"t{k + 1}" for k in range(types) if f"t{k + 1}" not in present]
    for server in servers:
        for number, kind in enumerate(server["workers"]):
            many = sum(s["workers"].count(kind) for s in servers) > 1
            if missing and many:
                server["workers"][number] = missing.pop()
    if missing:
        raise InputError("set.worker_types", types, "must not exceed the edge's workers: no cloud")


def _edgecloud_job(
    seed: int, s: EdgecloudSettings, name: str, arrival: int, requested: int | None
) -> Draft:
    """A job; as many workers are requested as are drawn for None."""
    draws = Draws(seed, f"job {name}")
    chunks, minibatches = draws.choice(MODELS)
    if s.chunks is not None:
        chunks = max(1, draws.integer(*s.chunks))
    if s.minibatches is not None:
        minibatches = max(1, draws.integer(*s.minibatches))
    hours = draws.uniform(*s.minibatch_hours) * s.minibatch_scale
    upload = {f"s{index + 1}": draws.integer(*s.edge_upload) for index in range(s.servers)}
    upload["cloud"] = draws.integer(*s.cloud_upload)
    job: Draft = {
        "name": name,
        "arrival": arrival,
        "epochs": max(1, draws.integer(*s.epochs)),
        "chunks": chunks,
        "minibatches": minibatches,
        "minibatch_slots": rounded(hours),
        "update_slots": rounded(draws.uniform(*s.update_ms) / 1000 / SECONDS),
        "gradient_mb": draws.uniform(*s.gradient_mb),
        "bandwidth_mbps": max(1.0, draws.uniform(*s.bandwidth_mbps)),
        "worker_type": f"t{draws.integer(1, s.worker_types)}",
        "ps_type": f"p{draws.integer(1, s.ps_types)}",
        "requested_workers": min(requested or draws.choice(s.requested_workers), chunks),
        "upload_slots": upload,
    }
    if s.chunk_gb is not None:
        job["chunk_gb"] = draws.uniform(*s.chunk_gb)
    return job


GENERATOR = FamilyGenerator(
    presets=PRESETS,
    generate=generate,
    assumptions={"edge_upload": (1, 1), "cloud_upload": (1, 1), "ps": (9, 9)},
    from_trace=from_trace,
    trace_settings=TraceSettings,
    suites=suites_of(
        generate,
        # The optimum is proven within seconds.
        small=[("small", seed, {}) for seed in range(5)],
        # A finite cloud, no cloud, limited storage: ``all-cloud`` cannot run on the first two.
        variants=[
            ("small", 3, {"cloud_workers": 2}),
            ("small", 4, {"cloud_workers": 0, "jobs": 5}),
            ("small", 5, {"storage_gb": 8, "chunk_gb": (2, 4)}),
        ],
        testbed=[("testbed", seed, {}) for seed in range(3)],
        paper=[
            ("paper", 0, {}),
            ("paper", 1, {"minibatch_scale": 0.05}),
            ("paper", 2, {"minibatch_scale": 0.05, "cloud_workers": 0}),
        ],
    ),
)
