"""``python -m pyrunner``."""

import sys

from pyrunner.cli.main import main

sys.exit(main())
