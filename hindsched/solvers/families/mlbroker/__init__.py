"""The methods of `solve` for `mlbroker`."""
