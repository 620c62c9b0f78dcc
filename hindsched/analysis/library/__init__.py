"""The benchmark library's best known objectives and bounds, as files that the kernel accepts."""
