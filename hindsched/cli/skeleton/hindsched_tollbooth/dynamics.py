"""Booths that are taken stay taken: the exact kernel judges a run's rows at its end."""

from __future__ import annotations

from hindsched.online.cluster_state import ClusterState


class TollboothState(ClusterState):
    """The rows so far; all that could be told of progress while cars pass is when they end."""
