"""A small user's file: every public call of README, strictly typed."""

import pandas as pd

import hindsched as hs


class Refuses(hs.OnlineAlgorithm):
    def start(self, environment: object) -> None:
        self.seen = 0

    def step(self, slot: int, arrivals: tuple[object, ...]) -> hs.Decision:
        self.seen += len(arrivals)
        return hs.Decision()


def judge(path: str) -> float:
    instance = hs.read(path)
    best = hs.solve(instance, time_limit=30)
    run = hs.simulate(instance, Refuses(), seed=1)
    found = hs.compare(instance, ["oasis", Refuses], progress=False)
    frame: pd.DataFrame = found.to_frame()
    ratio = hs.ratio(instance, ["fifo"]).algorithm("fifo").ratio.interval.upper
    checked = hs.verify(instance, run.solution, best.certificate)
    assert best.certificate is not None
    assert checked.bound is not None
    scored = hs.score("mine.py", family="gang", seeds=["word"] * 2)
    price = hs.foresight([instance]).price.lower
    hs.plot.save(hs.plot.gantt(run.solution), "run.png")
    print(hs.model(instance).to_latex(), hs.explain(run.solution, best.certificate).gap)
    return float(ratio or 0) + run.objective + scored.combined_score + (price or 0) + len(frame)
