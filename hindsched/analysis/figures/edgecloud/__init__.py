"""The figures of `edgecloud`'s paper."""
