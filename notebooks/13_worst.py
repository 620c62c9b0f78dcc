# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The instance on which an algorithm is worst
#
# A mean over random instances says little about the worst case. `hs.worst` searches the instance on
# which an algorithm is worst and returns a *witness*: the instance, the algorithm's run and a checked
# schedule that is better. Any feasible schedule proves its ratio; nobody's word is needed.
# `docs/guides/worst.md` has what was found for every paper's algorithm.

# %%
import os
import tempfile

import matplotlib.pyplot as plt

import hindsched as hs

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"


def draw(witness):
    """Draw the algorithm's schedule beside the better one."""
    _, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained", sharex=True)
    for ax, solution, title in zip(
        axes, (witness.runs[0].solution, witness.reference), ("online", "better"), strict=True
    ):
        hs.plot.gantt(solution, ax=ax, most=4)
        ax.set_title(title, loc="left")
    plt.show()


# %% [markdown]
# ## What theory knows
#
# Jobs of one GPU on m GPUs, started in the order of the list: Graham (1966) proved that the makespan
# is at most 2 - 1/m times the optimum, and that this is reached.

# %%
found = hs.worst("gang", "fifo", preset="machines", ranges={"gpus": 3}, work_limit=60)
print(found.explain())

# %%
draw(found)

# %% [markdown]
# On one GPU first in, first out is n times worse with n jobs: a long one, then short ones.

# %%
found = hs.worst("gang", "fifo", preset="one-gpu", ranges={"jobs": [1, 4]}, work_limit=40)
print(found.explain())

# %%
draw(found)

# %% [markdown]
# ## A paper's algorithm
#
# The same question about OASiS, in a small space: its theorem is told beside the witness, with what
# it assumes. A theorem that is contradicted although all of that holds would be said in capitals.

# %%
found = hs.worst("oasis", "oasis", work_limit=60)
print(found.explain())

# %%
draw(found)

# %% [markdown]
# ## The gallery
#
# The papers' algorithms on the suite `worst` of the library, which holds what longer searches found: each against the best
# schedule of the instance. What goes wrong on each, and the other algorithms, stands in `docs/guides/worst.md`.

# %%
import pandas as pd

rows = []
for family in ("oasis", "batchsched", "astraea", "edgecloud", "mlbroker")[: 2 if QUICK else 5]:
    for instance in hs.suite(family, "worst"):
        found = hs.ratio(instance, [family], time_limit=5).algorithms[0].ratio.interval
        rows.append(
            {"instance": instance.name, "jobs": len(instance.jobs), "ratio at least": found.lower}
        )
pd.DataFrame(rows)

# %% [markdown]
# ## An algorithm of one's own, and another one instead of the optimum
#
# A class, an object, `path/to/file.py:Class` or `exec:command` do as well as a name; `against`
# compares with another algorithm.


# %%
class Patient(hs.OnlineAlgorithm):
    """Serves nobody."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        return hs.Decision(rejected=[job.name for job in arrivals])


print(hs.worst("oasis", Patient, "fifo", preset="one-slot", work_limit=20).explain())

# %% [markdown]
# ## A folder that anyone can check
#
# The claim is recomputed from the files; the exact kernel judges both schedules.

# %%
with tempfile.TemporaryDirectory() as folder:
    hs.worst("oasis", "fifo", preset="one-slot", work_limit=40, folder=folder)
    print(hs.check_witness(folder))
