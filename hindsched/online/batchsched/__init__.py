"""Online algorithms of `batchsched`, their dynamics and the theorem."""
