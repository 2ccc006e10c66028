"""The filter language: text to conditions and back, and what a condition says of one event.

Start with `syntax`, the values that `where` and `xpath` parse into; `matching` and `paths` ask them of an event.
"""
