"""`python -m sameface`."""

from sameface.cli import main

if __name__ == "__main__":
    main()
