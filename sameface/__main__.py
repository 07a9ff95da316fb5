"""`python -m sameface`."""

from sameface.cli import main

main()
