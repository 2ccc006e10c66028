"""What the content-based ODMRP paper claims, and how each claim is judged from the rows of the experiments.

Each claim states how it reads words such as "about", "the same" or "constant". The first reading of a claim is of
the protocol as written (`PAPER`); our defaults and other readings of the words stand beside it. A file has the claims
of one section of the paper.
"""

from earshot.studies.content_odmrp.claims import beyond, mobility, structures, traffic
from earshot.studies.study import Claims

__all__ = ["CLAIMS"]

CLAIMS = Claims([*traffic.CLAIMS, *mobility.CLAIMS, *structures.CLAIMS, *beyond.CLAIMS])
