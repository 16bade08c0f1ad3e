"""`python -m kernels.checks`."""

import sys

from kernels.checks import main

sys.exit(main())
