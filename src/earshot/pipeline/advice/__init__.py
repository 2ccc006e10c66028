"""Advice: which protocol with which settings serves a trace best. Start with `advise`; `search` has the procedure."""
