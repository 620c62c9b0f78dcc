"""The figures of `astraea`'s paper."""
