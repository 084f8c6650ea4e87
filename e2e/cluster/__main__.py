"""`python3 -m e2e.cluster`: see cli.py."""

import sys

from .cli import main

sys.exit(main())
