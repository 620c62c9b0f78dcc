"""Builders of `mlbroker` instances: ``hs.mlbroker.Job`` and what else a file holds.

Examples
--------
>>> import hindsched as hs
>>> price = hs.mlbroker.Price(unit_usd=3, discounted_usd=2, threshold=4)
>>> hs.mlbroker.Instance(
...     name="mine", horizon=2, slot_seconds=3600, resources=["gpu"], jobs=[],
...     datacenters=[hs.mlbroker.Datacenter(name="r1", prices={"gpu": price})],
...     transfer_usd_per_gb=[[0]],
... )
<mlbroker instance 'mine': 0 jobs, horizon 2>
"""

from __future__ import annotations

from hindsched.instances.mlbroker.instance import CostWeights as Weights
from hindsched.instances.mlbroker.instance import MlbrokerDatacenter as Datacenter
from hindsched.instances.mlbroker.instance import MlbrokerInstance as Instance
from hindsched.instances.mlbroker.instance import MlbrokerJob as Job
from hindsched.instances.mlbroker.instance import TierPrice as Price

__all__ = ["Datacenter", "Instance", "Job", "Price", "Weights"]
