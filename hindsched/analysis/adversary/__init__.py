"""The adversary: futures on which no online algorithm is good, searched and proven."""
