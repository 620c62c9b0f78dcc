"""Small instances of the library, and small files that ask for a lot."""

import hindsched as hs
from hindsched.instances.io import parse_instance

EXAMPLES = {
    "oasis": "oasis-t10-i10-h10-s0",
    "batchsched": "batchsched-ps-j5-s200",
    "astraea": "astraea-j5-s40",
    "edgecloud": "edgecloud-j5-s601",
    "mlbroker": "mlbroker-r3-t2-s51",
    "gang": "gang/small/j6-s1",
}


def hostile(family):
    """A small file that asks for a lot: long jobs, or a horizon of a million slots."""
    data = hs.named_instance(EXAMPLES[family]).to_dict()
    if family == "oasis":
        data["horizon"] = 1_000_000
    if family == "astraea":
        data["horizon"] = 70_000
        data["jobs"][0]["utility"] = {"kind": "power", "scale": 1e6, "exponent": 1.0}
    if family == "batchsched":
        for job in data["jobs"]:
            job["epochs"] = 1000
    if family == "edgecloud":
        data["jobs"][0]["minibatches"] = 1_000_000
    return parse_instance(data)
