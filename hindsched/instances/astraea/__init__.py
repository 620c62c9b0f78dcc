"""Builders of `astraea` instances: ``hs.astraea.Job`` and what else a file holds.

Examples
--------
>>> import hindsched as hs
>>> hs.astraea.Instance(
...     name="mine", horizon=9, slot_seconds=3600, utility_origin="arrival",
...     tenants=[hs.astraea.Tenant(name="lab", worker_quota=8, ps_quota=1)],
...     servers=[hs.astraea.Server(name="s", workers=8, ps=1)],
...     worker_bandwidth_mbps=1000, ps_bandwidth_mbps=5000,
... )
<astraea instance 'mine': 0 jobs, horizon 9>
"""

from __future__ import annotations

from hindsched.instances.astraea.instance import AstraeaInstance as Instance
from hindsched.instances.astraea.instance import AstraeaJob as Job
from hindsched.instances.astraea.instance import AstraeaServer as Server
from hindsched.instances.astraea.instance import AstraeaTenant as Tenant
from hindsched.instances.base import LinearUtility as Linear
from hindsched.instances.base import PowerUtility as Power

__all__ = ["Instance", "Job", "Linear", "Power", "Server", "Tenant"]
