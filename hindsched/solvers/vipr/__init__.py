"""Proofs of linear and mixed-integer programs in the format of VIPR."""
