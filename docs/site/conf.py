"""Settings of Sphinx for the site."""

project = "Many Heads"
author = "The Many Heads authors"
html_title = "Many Heads"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
html_theme = "furo"
default_role = "code"  # docstrings have single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "description"
smartquotes = False  # they make one dash of an option's two
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
