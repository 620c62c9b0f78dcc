"""Online algorithms of `astraea`, their dynamics and the theorem."""
