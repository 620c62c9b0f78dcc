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
# # A score for a scheduler that nobody trusts
#
# `hs.score` plays a scheduler, as a process of its own in a sandbox, on instances that it cannot know; the
# exact kernel judges its rows, and the denominator is a certified bound on the offline optimum.
# `docs/guides/score.md` says what was tried against it.

# %%
import os
import tempfile
from pathlib import Path

import hindsched as hs

QUICK = os.environ.get("HINDSCHED_QUICK") == "1"
SEEDS = list(range(101, 105 if QUICK else 113))
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## An own algorithm
#
# Whoever came first starts first, and nobody passes who waits.

# %%
MINE = '''
import hindsched as hs

class Mine(hs.OnlineAlgorithm):
    """In order of arrival; who does not fit stops all behind."""

    def start(self, environment):
        self.free = environment.cluster.total_gpus
        self.waiting, self.held = [], {}

    def completed(self, slot, jobs):
        self.free += sum(self.held.pop(name) for name in jobs)

    def order(self, job):
        return 0

    def step(self, slot, arrivals):
        self.waiting = sorted([*self.waiting, *arrivals], key=self.order)
        rows = {}
        for job in list(self.waiting):
            if job.gpus > self.free:
                break
            rows[job.name] = [{"from": slot, "gpus": job.gpus}]
            self.held[job.name] = job.gpus
            self.free -= job.gpus
            self.waiting.remove(job)
        return hs.Decision(rows)
'''
(folder / "mine.py").write_text(MINE)
first = hs.score(str(folder / "mine.py"), family="gang", seeds=SEEDS, out=folder / "first")
first

# %% [markdown]
# Its score is the mean of what is certain: each schedule's share of the optimum, at least.

# %%
first.instances[["instance", "score", "at_most", "objective", "bound", "reason"]]

# %% [markdown]
# ## Why it lost
#
# Others on the same instances, and the algorithm beside each: on how many it is better or worse.

# %%
first.ladder[["algorithm", "score", "better", "worse", "ties", "difference"]]

# %% [markdown]
# What an author may see tells nothing of the hidden instances but the score; of the public ones it draws the schedule. Where GPUs
# are free while a short job waits behind a long one, the order is to blame.

# %%
print(first.feedback)

# %% [markdown]
# ## A better one
#
# The job with the least work first, as Smith's rule has it on one machine, and others pass who fit.

# %%
better = MINE.replace("return 0", "return job.gpus * job.duration / job.weight")
better = better.replace("                break\n", "                continue\n")
(folder / "better.py").write_text(better)
second = hs.score(str(folder / "better.py"), family="gang", seeds=SEEDS, out=folder / "second")
print(first.combined_score, "->", second.combined_score)

# %% [markdown]
# ## A cheat
#
# It says that it did well. Nobody listens.

# %%
(folder / "cheat.py").write_text("print('{\"combined_score\": 1.0}')")
cheat = hs.score(str(folder / "cheat.py"), family="gang", seeds=SEEDS, out=folder / "cheat")
cheat.instances[["instance", "score", "status", "reason"]].head(2)

# %% [markdown]
# ## The board, and a check by anybody
#
# `hindsched score --board DIR...` ranks folders of the same instances; `hindsched verify DIR` judges a folder again without
# running its candidate.

# %%
import pandas as pd

from hindsched.analysis.score.page import board, verify_score

rows = board([folder / name for name in ("first", "second", "cheat")])
pd.DataFrame(rows)[["rank", "candidate", "score", "interval", "tie", "failed", "sandbox"]]

# %%
[verify_score(folder / name) for name in ("first", "second", "cheat")]
