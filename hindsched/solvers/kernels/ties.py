"""The one tie rule of online decisions.

Payoffs, costs and prices that differ by less than `TIE` of their size are equal: what rounding
leaves of a difference decides nothing. Of equal schedules the one that completes earliest is taken,
then the one with the fewest workers, then with the fewest PSs, then servers in the file's order.
"""

TIE = 1e-9
"""Share of their size by which equal numbers may differ."""
