"""Branch and bound over the oracle; its tree is a certificate."""
