"""The declarative programs of `edgecloud`."""
