"""How Sphinx makes the documentation; `tools/docs/build.py` calls it, on a copy of the pages."""

import importlib.metadata

project = "Windloom"
release = importlib.metadata.version("windloom")
html_title = f"Windloom {release}"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
exclude_patterns = ["examples"]

# Pages are written for GitHub, whose anchors these are.
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]

# Docstrings mark code as Markdown does.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
# Types of `TYPE_CHECKING` blocks and of other packages have no page here.
nitpicky = False

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "github-dark"
