"""The methods of `solve` for `batchsched`."""
