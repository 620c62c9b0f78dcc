"""The programs of jobs by their modes (`block.py`) as mathematics."""

from __future__ import annotations

from hindsched.models.windows.block import Family

NOTATION = {
    "j": ("job", "job, of [J]"),
    "t": ("slot", "slot, of [T]"),
    "h": ("server", "server, of [H]"),
    "r": ("resource", "resource, of [R]"),
    "k = (m_k, n_k, L_k)": ("mode", "mode: types, whether on one server, workers n, slots L"),
    "u_{jk}(t, h, g)": (
        "u", "1 if mode k starts in slot t, its PSs on server h beside g of its workers",
    ),
    "y_{jmL}(t, h)": ("y", "workers of type m beside no PS, in the window of L slots from t"),
    "w_j": ("weight", "weight"),
    "f_j": ("revenue", "revenue by the last slot"),
    r"Y_{jm}(h)": ("most_beside", "most workers of a type that fit on the server"),
    r"\chi_{kg}^r": ("host_use", "what g workers and their PSs take"),
    "e_m^r": ("worker_demand", "what a worker takes"),
    "C_h^r": ("server_capacity", "what a server has"),
}  # fmt: skip
ALL, OF_WINDOW = r"\sum_{k, t, h, g}", r"\sum_{k : m_k = m, L_k = L} \sum_{h', g}"
EACH_JOB, EACH_SLOT = (rf"\quad \forall j \in [J]{more}" for more in ("", ", t"))
ON_HOST = r"\sum_{k, t', g : t' \le t < t' + L_k} \chi_{kg}^r u_{jk}(t', h, g)"
BESIDE = r"\sum_{m, L, t' : t' \le t < t' + L} e_m^r y_{jmL}(t', h)"


def block_equations(family: Family) -> dict[str, str]:
    """The rules of all jobs' blocks and of the capacities, under a family's numbers."""
    chosen, demand = r"u_{jk}(t, h', g)", family.cluster.worker_demand
    use = {
        capacity.number: f"{ON_HOST} + {BESIDE}" if demand[:, capacity.kinds].any() else ON_HOST
        for capacity in family.capacities
    }
    return {
        f"eq_{number}": rf"\sum_{{j \in [J]}} \Bigl( {used} \Bigr) \le C_h^r,"
        r" \quad \forall h \in [H], r \in [R], t \in [T]"
        for number, used in use.items()
    } | {
        f"eq_{family.within}": rf"y_{{jmL}}(t, h) \le {OF_WINDOW}"
        rf" \min(Y_{{jm}}(h), n_k) {chosen}, {EACH_SLOT}, m, L, h",
        f"eq_{family.split}": r"\sum_{h \in [H]} y_{jmL}(t, h)"
        rf" = {OF_WINDOW} (n_k - g) {chosen}, {EACH_SLOT}, m, L",
    }


def worth_of_end(worth: str) -> str:
    """Sum over a job's possible ends of what ``{last}``, its last slot, is `worth`."""
    return rf"{ALL} {worth.format(last='t + L_k - 1')} u_{{jk}}(t, h, g)"
