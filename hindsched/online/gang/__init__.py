"""Online algorithms of gang: the schedulers in use."""
