"""How conditions relate: one normal form, covering and merging, and overlap.

Start with `covering`; it searches its proofs in `implying`. Every filter is kept in its `normal_form`.
"""
