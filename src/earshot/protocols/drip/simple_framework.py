"""SF, the simple framework DRIP is measured against (section VI.A): the same regions, but brokers share
every event as an epidemic, whether or not somebody in the other regions wants it."""

from __future__ import annotations

from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.sharing import Epidemic, Sharing


class SimpleFramework(Drip):
    name = "drip-sf"
    paper = "Yuan, Wu: the simple framework SF of the DRIP paper, an epidemic between brokers (2007)"

    def sharing(self) -> Sharing:
        return Epidemic()
