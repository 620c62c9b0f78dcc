"""The price of not knowing: what any online algorithm can do on given futures, proven."""
