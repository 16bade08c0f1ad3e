"""`python -m specviz`: the same engine without a browser."""

import sys

from specviz.cli import main

sys.exit(main())
