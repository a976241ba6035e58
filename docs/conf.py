"""How Sphinx builds the site; `docs.making` gathers its sources and calls it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Forge Actors"
copyright = "the contributors, Apache License 2.0"  # noqa: A001 - the name that is read
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
root_doc = "index"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # what is cut, as `{"id": ...}`

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
add_module_names = False

html_theme = "furo"
html_title = "Forge Actors"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "font-stack": "system-ui, sans-serif",
        "font-stack--monospace": "ui-monospace, monospace",
    },
}
pygments_style = "friendly"
pygments_dark_style = "native"

_ERROR = re.compile(r"^    (?=\S)([^:]+):", re.MULTILINE)
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _marked)


def _marked(*told: object) -> None:
    """Docstrings mark code as Markdown does, and list errors below `Raises:`."""
    lines = told[-1]
    assert isinstance(lines, list)
    text, colon, errors = "\n".join(lines).partition("\nRaises:\n")
    if colon:
        errors = _ERROR.sub(r":raises \1:", errors)
        text = f"{text}\n{errors}"
    lines[:] = _CODE.sub(r"``\1``", text).split("\n")
