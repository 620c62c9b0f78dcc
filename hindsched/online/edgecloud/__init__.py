"""Online algorithms of `edgecloud`, their dynamics and the theorem."""
