"""The figures of `oasis`'s paper."""
