"""`python -m forge_actors`: the command line; without arguments, the service."""

from __future__ import annotations

import sys

from forge_actors.cli.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["serve"]))
