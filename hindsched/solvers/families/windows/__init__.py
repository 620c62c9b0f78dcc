"""What the oracles of batchsched and astraea share."""
