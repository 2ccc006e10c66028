"""Studies: each folder reproduces one paper's experiments and judges its claims.

Start with `study`, which defines experiments and claims, then read a paper's folder from its `study.py`,
which holds the `STUDY`. `running` runs a study in Spark and writes the report of `earshot reproduce`.
"""
