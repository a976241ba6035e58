"""What is where in a home: everything there that is ours has its name here."""

from __future__ import annotations

#: The jobs, the repositories and their history.
STORE_FILE = "store.sqlite"
