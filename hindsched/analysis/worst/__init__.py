"""The instance on which an algorithm is worst: search, shrinking, witness."""
