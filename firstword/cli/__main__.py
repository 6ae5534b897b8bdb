"""`python -m firstword.cli`: the command without its script."""

import sys

from firstword.cli import main

if __name__ == "__main__":
    sys.exit(main())
