"""What is given: frozen, validated instances, their files, generators and trace loaders."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["astraea", "batchsched", "edgecloud", "mlbroker", "oasis"]
)
