"""How Sphinx builds the site; `docs.making` gathers its sources and calls it."""

from forge_actors import __version__

project = "Forge Actors"
copyright = "the contributors, Apache License 2.0"  # noqa: A001 - the name that is read
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
root_doc = "index"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # what is cut, as `{"id": ...}`

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
add_module_names = False
napoleon_use_rtype = False

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
