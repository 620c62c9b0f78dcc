"""Longest job first on GPUs, as a class of one's own.

Graham (1969) bounds its makespan by 4/3 - 1/(3m) times the optimum for jobs of one GPU on m GPUs.
"""

from hindsched import Decision, OnlineAlgorithm


class LongestFirst(OnlineAlgorithm):
    """Whoever fits starts, the longest first; among equals in the order of arrival."""

    def start(self, environment):
        """Begin with all GPUs free."""
        self.free = environment.cluster.total_gpus
        self.waiting, self.gpus = [], {}

    def completed(self, slot, jobs):
        """Take back the GPUs of jobs that ended."""
        self.free += sum(self.gpus[name] for name in jobs)

    def step(self, slot, arrivals):
        """Start what fits."""
        self.waiting.extend(arrivals)
        self.waiting.sort(key=lambda job: -job.duration)
        rows = {}
        for job in list(self.waiting):
            if job.gpus <= self.free:
                self.free -= job.gpus
                self.gpus[job.name] = job.gpus
                self.waiting.remove(job)
                rows[job.name] = [{"from": slot, "gpus": job.gpus}]
        return Decision(rows)
