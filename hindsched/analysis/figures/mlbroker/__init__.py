"""The figures of `mlbroker`'s paper."""
