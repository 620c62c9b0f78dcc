"""The programs of the families whose jobs run in one window: batchsched and astraea."""
