"""Builders of `edgecloud` instances: ``hs.edgecloud.Job`` and what else a file holds.

Examples
--------
>>> import hindsched as hs
>>> hs.edgecloud.Instance(
...     name="mine", horizon=9, slot_seconds=3600, cloud=hs.edgecloud.Cloud(name="cloud"),
...     servers=[hs.edgecloud.Server(name="s", workers=["v100", "v100"], ps=["cpu"])],
... )
<edgecloud instance 'mine': 0 jobs, horizon 9>
"""

from __future__ import annotations

from hindsched.instances.edgecloud.instance import EdgecloudCloud as Cloud
from hindsched.instances.edgecloud.instance import EdgecloudInstance as Instance
from hindsched.instances.edgecloud.instance import EdgecloudJob as Job
from hindsched.instances.edgecloud.instance import EdgecloudServer as Server

__all__ = ["Cloud", "Instance", "Job", "Server"]
