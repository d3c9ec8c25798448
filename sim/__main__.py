"""`python -m sim` is `specsim`."""

import sys

from .cli.main import command

if __name__ == "__main__":
    sys.exit(command())
