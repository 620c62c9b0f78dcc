"""Builders of `batchsched` instances: ``hs.batchsched.Job`` and what else a file holds.

Examples
--------
>>> import hindsched as hs
>>> kind = hs.batchsched.Type(name="p2", demand={"gpu": 1, "mbps": 1000})
>>> hs.batchsched.Instance(
...     name="mine", horizon=9, slot_seconds=3600, architecture="ring-allreduce",
...     resources=["gpu", "mbps"], bandwidth_resource="mbps", worker_types=[kind],
...     servers=[hs.batchsched.Server(name="s", capacity={"gpu": 4, "mbps": 9000})],
... )
<batchsched instance 'mine': 0 jobs, horizon 9>
"""

from __future__ import annotations

from hindsched.instances.base import Server as Server
from hindsched.instances.batchsched.instance import BatchschedInstance as Instance
from hindsched.instances.batchsched.instance import BatchschedJob as Job
from hindsched.instances.batchsched.instance import BatchschedType as Type

__all__ = ["Instance", "Job", "Server", "Type"]
