"""The declarative programs of `batchsched`."""
