"""The one door to any solver, pricing oracles, bounding engines and certificates."""
