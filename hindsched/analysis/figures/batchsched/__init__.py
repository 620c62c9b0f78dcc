"""The figures of `batchsched`'s paper."""
