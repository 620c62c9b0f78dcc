"""Mathematical programs for online scheduling of distributed machine-learning jobs.

``import hindsched as hs`` gives the public names of ``__init__.pyi``; each is imported when it is
first used, so that importing the package loads no solver.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
