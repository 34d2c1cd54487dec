"""The command ``python -m conformance.packages NAME...``."""

import sys

from .command import main

sys.exit(main())
