"""A protocol that is not part of the package, as a file's text."""

from pathlib import Path

SHOUT = Path(__file__).with_name("shout_protocol.py").read_text()
"A whole protocol; its packet's tag is `test-shout`."
