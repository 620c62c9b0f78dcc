"""Online algorithms of `mlbroker`, their dynamics and the theorem."""
