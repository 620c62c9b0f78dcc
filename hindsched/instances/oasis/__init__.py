"""Builders of `oasis` instances: ``hs.oasis.Job`` and what else a file holds, with checked fields.

Examples
--------
>>> import hindsched as hs
>>> server = hs.oasis.Server(name="s", capacity={"gpu": 2, "mbps": 1000})
>>> job = hs.oasis.Job(
...     name="bert", arrival=1, epochs=1, chunks=2, minibatches=4, minibatch_slots=0.5,
...     gradient_mb=0, worker={"gpu": 1, "mbps": 100}, ps={"mbps": 200},
...     utility=hs.oasis.Sigmoid(priority=20, decay=2, target=3),
... )
>>> hs.oasis.Instance(
...     name="mine", horizon=6, slot_seconds=3600, resources=["gpu", "mbps"],
...     bandwidth_resource="mbps", worker_servers=[server], ps_servers=[server], jobs=[job],
... )
<oasis instance 'mine': 1 jobs, horizon 6>
"""

from __future__ import annotations

from hindsched.instances.base import LinearUtility as Linear
from hindsched.instances.base import Server as Server
from hindsched.instances.base import SigmoidUtility as Sigmoid
from hindsched.instances.oasis.instance import OasisInstance as Instance
from hindsched.instances.oasis.instance import OasisJob as Job

__all__ = ["Instance", "Job", "Linear", "Server", "Sigmoid"]
