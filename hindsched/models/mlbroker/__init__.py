"""The declarative programs of `mlbroker`."""
