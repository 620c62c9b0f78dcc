"""The exact kernel: a small checker that shares nothing with the rest of the package.

``python -m hindsched.kernel INSTANCE [SOLUTION] [CERTIFICATE]``, or this folder alone, copied
anywhere: ``python -m kernel ...``. Standard library only. A number in a file is the decimal that is
written; sums are exact; sigmoids and powers are enclosed outward. A family is one module here with

- ``SENSE``: ``"max"`` or ``"min"``;
- ``FORMULATIONS``: a file's word for its formulation -> the problem that it means;
- ``check(instance, solution)``: `Checked`, the exact objective and every violation;
- ``bound(instance, certificate, progress)``: an `Interval` that encloses what the prices prove.
"""
