"""Every shipped example and every real trace reads as it did when its golden frame was written."""

from __future__ import annotations

import json

import pytest

from tests.instances.traces.golden import KEPT, LOGS, REAL, TRACES, log_summary, trace_summary

EXPECTED = json.loads(KEPT.read_text())


@pytest.mark.parametrize("name", [*LOGS, *TRACES])
def test_golden_frame(name: str) -> None:
    is_log = name in LOGS
    file = (LOGS if is_log else TRACES)[name][1]
    if file.startswith("@") and not REAL.is_dir():
        pytest.skip("HINDSCHED_TRACES names no folder of real traces")
    found = (log_summary if is_log else trace_summary)(name)
    assert json.loads(json.dumps(found)) == EXPECTED[name]
