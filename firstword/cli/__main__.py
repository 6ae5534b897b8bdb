"""`python -m firstword.cli`: the command without its script."""

import sys

from firstword.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
