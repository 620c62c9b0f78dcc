"""Hand-made records of tasks, so that tables are tested against numbers worked by hand."""


def offline(instance, objective, bound, *, sense="max", status="feasible", **more):
    return {
        "task": f"{instance}--offline", "kind": "offline", "instance": instance,
        "algorithm": None, "seed": 0, "settings": {"method": "auto"}, "status": "ok",
        "error": None, "family": "oasis", "sense": sense, "solve_status": status,
        "objective": objective, "bound": bound, "proof": "certificate", "method": "bound",
        "seconds": 1.0, "gap": None, **more,
    }  # fmt: skip


def online(instance, algorithm, objective, *, seed=0, sense="max", **more):
    return {
        "task": f"{instance}--{algorithm}--s{seed}", "kind": "online", "instance": instance,
        "algorithm": algorithm, "seed": seed, "settings": {}, "status": "ok", "error": None,
        "family": "oasis", "sense": sense, "objective": objective, "in_feasible_set": True,
        "violations": [], "theorem": None, "jobs_completed": 3, "jobs_rejected": 1,
        "decision_ms_median": 0.5, "decision_ms_max": 1.0, "seconds": 0.1, **more,
    }  # fmt: skip


def failed(instance, algorithm, error="SolveFailed: stuck"):
    return {
        "task": f"{instance}--{algorithm}--s0", "kind": "online", "instance": instance,
        "algorithm": algorithm, "seed": 0, "settings": {}, "status": "failed", "error": error,
    }  # fmt: skip
