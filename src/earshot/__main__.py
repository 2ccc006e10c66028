"""`python -m earshot`."""

from earshot.cli import main

main()
