"""The filter language: text to conditions and back, and whether an event meets a condition.

Start with `syntax`, the conditions that `where` and `xpath` parse texts into (`parser` is what both share).
`matching` and `paths` compile a condition into a predicate on events, `values` compares values,
`canonical_text` writes a condition back, and `explaining` gives the reasons for an answer.
"""
