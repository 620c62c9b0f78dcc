"""Online algorithms of `oasis`, their dynamics and the theorem."""
