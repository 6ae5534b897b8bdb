"""`python -m firstword`: the command `firstword` without its script."""

import sys

from firstword.cli import main

if __name__ == "__main__":
    sys.exit(main())
