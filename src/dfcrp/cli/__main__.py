"""``python -m dfcrp.cli``: the same as ``dfcrp``."""

from __future__ import annotations

import sys

from dfcrp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
