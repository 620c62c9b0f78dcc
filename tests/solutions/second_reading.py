"""What a solution's tables must say, read off its rows and the instance's data in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from typing import Any

Rows = list[dict[str, Any]]
Use = Counter[tuple[Any, ...]]


def slots(row: dict[str, Any]) -> range:
    """Slots of a row."""
    return range(row["from"], row["to"] + 1)


def merged(rows: Rows) -> Rows:
    """Rows in order of time, neighbours of the same content as one."""
    found: Rows = []
    for row in sorted(rows, key=lambda row: row["from"]):
        content = {key: row[key] for key in row if key not in ("from", "to")}
        last = found[-1] if found else None
        if last and last["to"] + 1 == row["from"] and all(last[k] == v for k, v in content.items()):
            last["to"] = row["to"]
        else:
            found.append(dict(row))
    return found


def pauses(rows: Rows) -> int:
    """How often a job stands still between two rows."""
    return sum(after["from"] > before["to"] + 1 for before, after in pairwise(rows))


def _window(row: Rows, job: dict[str, Any]) -> dict[str, Any]:
    rows = merged(row)
    homes = [
        {name for part in (one["workers"], one.get("ps") or {}) for name in part if part[name]}
        for one in rows
    ]
    return {
        "workers": max((sum(one["workers"].values()) for one in rows), default=0),
        "one_server": all(len(home) == 1 for home in homes) if rows else None,
        "preemptions": pauses(rows),
    }


def _batchsched(rows: Rows, job: dict[str, Any], _: Any) -> dict[str, Any]:
    return {
        **_window(rows, job), "weight": job["weight"], "resizes": max(0, len(merged(rows)) - 1)
    }  # fmt: skip


def _astraea(rows: Rows, job: dict[str, Any], _: Any) -> dict[str, Any]:
    paid = [
        (row["to"] - row["from"] + 1) * sum(row["payment"].values())
        for row in rows if "payment" in row
    ]  # fmt: skip
    return {
        **_window(rows, job), "tenant": job["tenant"], "paid": sum(paid), "shared": bool(paid)
    }  # fmt: skip


def _oasis(rows: Rows, job: dict[str, Any], _: Any) -> dict[str, Any]:
    busy = [sum(row["workers"].values()) for row in rows for _ in slots(row)]
    return {
        "worker_slots": sum(busy), "most_workers": max(busy, default=0),
        "priority": job["utility"]["priority"],
    }  # fmt: skip


def _edgecloud(rows: Rows, job: dict[str, Any], cloud: str) -> dict[str, Any]:
    runs = [row for row in rows if "chunk" in row]
    places = {(row["chunk"], row["server"]) for row in runs}
    lanes = len({chunk for chunk, _ in places})
    by_chunk = groupby(sorted(runs, key=lambda r: (r["chunk"], r["from"])), lambda r: r["chunk"])
    return {
        "chunks": job["chunks"],
        "cloud_chunks": sum(server == cloud for _, server in places),
        "preemptions": sum(pauses(list(own)) for _, own in by_chunk),
        "upload_slots": sum(job["upload_slots"][server] for _, server in places)
        * job["chunks"] / max(1, lanes),
    }  # fmt: skip


def _mlbroker(rows: Rows, job: dict[str, Any], _: Any) -> dict[str, Any]:
    return {"worker_slots": sum(sum(row["workers"].values()) for row in rows for _ in slots(row))}


def _gang(rows: Rows, job: dict[str, Any], slot_seconds: float) -> dict[str, Any]:
    start = min((row["from"] for row in rows), default=None)
    return {
        "pieces": len(rows), "gpus": job["gpus"], "weight": job["weight"], "user": job.get("user"),
        "wait_seconds": start and (start - 1) * slot_seconds - job["submit"],
    }  # fmt: skip


_FACTS = {
    "astraea": _astraea, "batchsched": _batchsched, "edgecloud": _edgecloud, "gang": _gang,
    "mlbroker": _mlbroker, "oasis": _oasis,
}  # fmt: skip


def facts(data: dict[str, Any], assignments: dict[str, Rows]) -> list[dict[str, Any]]:
    """What `job_rows` must say of each job, completions and values apart."""
    other = data["cloud"]["name"] if "cloud" in data else data.get("slot_seconds")
    found = []
    for job in data["jobs"]:
        rows = assignments.get(job["name"], [])
        running = [row for row in rows if "chunk" in row or data["family"] != "edgecloud"]
        start = min((row["from"] for row in running), default=None)
        own = _FACTS[data["family"]](rows, job, other)
        arrival = job["arrival"] if "arrival" in job else job["submit"] / data["slot_seconds"] + 1
        found.append({"job": job["name"], "arrival": arrival, "start": start, **own})
    return found


def use(data: dict[str, Any], assignments: dict[str, Rows]) -> Use:
    """What `usage_rows` must say: amounts by slot, server and resource (oasis: and role)."""
    family, found = data["family"], Counter()
    demands = {
        kind["name"]: kind["demand"]
        for kind in (*data.get("worker_types", ()), *(data.get("ps_types") or ()))
        if isinstance(kind, dict)
    }
    for job in data["jobs"]:
        for row in assignments.get(job["name"], ()):
            for slot in slots(row):
                if family == "gang":
                    found[slot, "cluster", "gpu"] += row.get("gpus") or sum(row["servers"].values())
                elif family == "edgecloud":
                    if "chunk" in row:
                        found[slot, row["server"], job["worker_type"]] += 1
                elif family == "mlbroker":
                    amounts = [(name, n, job["worker"]) for name, n in row["workers"].items()]
                    for name, n, demand in (*amounts, (row["ps"], 1, job["ps"])):
                        for resource, amount in demand.items():
                            found[slot, name, resource] += n * amount
                else:
                    _add_roles(found, family, slot, row, job, demands)
    return Counter({key: amount for key, amount in found.items() if amount})


def _add_roles(
    found: Use, family: str, slot: int, row: dict[str, Any], job: dict[str, Any], demands: Any
) -> None:
    for role, part, kind in (("worker", "workers", "worker_type"), ("ps", "ps", "ps_type")):
        for name, n in (row.get(part) or {}).items():
            if family == "oasis":
                for resource, amount in job[role].items():
                    found[slot, role, name, resource] += n * amount
            elif family == "batchsched":
                for resource, amount in demands[row[kind]].items():
                    found[slot, name, resource] += n * amount
            else:
                found[slot, name, row.get(kind, role)] += n


def capacity(data: dict[str, Any], row: dict[str, Any]) -> float:
    """What `usage_rows` must state as the capacity of a row's place and resource."""
    family, server, resource = data["family"], row["server"], row["resource"]
    if family == "gang":
        return sum(one["gpus"] for one in data["servers"]) if "servers" in data else data["gpus"]
    if family == "mlbroker":
        [place] = [one for one in data["datacenters"] if one["name"] == server]
        return place["prices"][resource]["threshold"]
    if family == "edgecloud":
        if server == data["cloud"]["name"]:
            return (data["cloud"].get("workers") or {}).get(resource, row["capacity"])
        [place] = [one for one in data["servers"] if one["name"] == server]
        return place["workers"].count(resource)
    servers = data["servers"] if family != "oasis" else data[f"{row['role']}_servers"]
    [place] = [one for one in servers if one["name"] == server]
    if family == "astraea":
        for role, part in (("worker", place["workers"]), ("ps", place["ps"])):
            if isinstance(part, dict) and resource in part:
                return part[resource]
            if role == resource:
                return part
    return place["capacity"][resource]
