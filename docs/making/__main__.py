"""Builds the site into a folder; exits with 1 if anything about it is wrong."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.making import links, reference, routes, sources, speed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.making", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the site; made where it is not")
    site = parser.parse_args().folder.resolve()
    with tempfile.TemporaryDirectory(prefix="forge-docs-") as made:
        source = Path(made, "source")
        sources.gather(source)
        for place, text in (*reference.pages(), *routes.pages(), *speed.pages()):
            file = source / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        built = subprocess.run(
            [
                *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet"),
                *("--builder", "html", "--doctree-dir", Path(made, "trees")),
                *(source, site),
            ],
            check=False,
        )
    wrong = [] if built.returncode else links.problems(site)
    for line in wrong:
        print(line, file=sys.stderr)
    if built.returncode or wrong:
        return 1
    print(f"{site}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
