"""The worked example of astraea's paper (Sections 4.2-4.4), as an instance."""

from __future__ import annotations

from hindsched.instances.astraea.instance import AstraeaInstance

SLOTS = 100


def worked_example(names=("j11", "j12", "j21", "j22"), horizon=SLOTS, **changes):
    """Four servers of 2 workers and 1 PS, two tenants; td = tc + 1 by a gradient of 1 MB."""
    chunks = {"j11": 2, "j12": 3, "j21": 2, "j22": 30}
    data = {
        "format": "hindsched/1", "family": "astraea", "name": "worked-example", "horizon": horizon,
        "slot_seconds": 16, "utility_origin": "arrival", "worker_bandwidth_mbps": 1,
        "ps_bandwidth_mbps": 1,
        "tenants": [{"name": u, "worker_quota": 4, "ps_quota": 2} for u in ("u1", "u2")],
        "servers": [{"name": f"s{s}", "workers": 2, "ps": 1} for s in (1, 2, 3, 4)],
        "jobs": [
            {
                "name": name, "tenant": "u1" if name < "j2" else "u2", "arrival": 3, "epochs": 2,
                "chunks": chunks[name], "minibatches": 1, "minibatch_slots": 1, "update_slots": 0,
                "gradient_mb": 1, "utility": {"kind": "linear", "slope": -2, "intercept": 100},
            }
            for name in names
        ],
    }  # fmt: skip
    return AstraeaInstance.parse({**data, **changes})


def round_instance(instance: AstraeaInstance, slots: int) -> AstraeaInstance:
    """The round problem's instance: (3) with all jobs there at time 0, utilities from then on."""
    jobs = tuple(job.model_copy(update={"arrival": 0}) for job in instance.jobs)
    return instance.with_fields(horizon=slots, utility_origin="absolute", jobs=jobs)
