"""`python -m svae` is `svae`."""

import sys

from svae.cli import main

if __name__ == "__main__":
    sys.exit(main())
