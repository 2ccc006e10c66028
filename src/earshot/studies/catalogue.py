"""The studies there are: name to module, imported when asked for."""

from __future__ import annotations

import importlib

from earshot.errors import UnknownName
from earshot.studies.study import Study

STUDIES: dict[str, str] = {
    "codd": "earshot.studies.codd.study",
    "content-odmrp": "earshot.studies.content_odmrp.study",
    "drip": "earshot.studies.drip.study",
    "georendezvous": "earshot.studies.georendezvous.study",
    "steam": "earshot.studies.steam.study",
}
"Each module holds its study as `STUDY`."


def study(name: str) -> Study:
    """The study of that name."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    found = importlib.import_module(STUDIES[name]).STUDY
    assert isinstance(found, Study)
    return found
