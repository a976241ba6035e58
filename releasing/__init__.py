"""Makes what is published, and tries it: `python -m releasing FOLDER`.

The folder gets the sdist, the wheel, and a bill of what the wheel brings along where it
is installed (CycloneDX). Two builds have to be the same to the byte: one of this
checkout, and one of what the first sdist unpacks to elsewhere, so that is whole as
well. Then the wheel is installed where nothing else is, and runs a real service.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


class Wrong(Exception):
    """What may not be published, in a sentence."""
