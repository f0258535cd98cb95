"""The documentation site. `make docs` builds it; every page works from disk, and asks for nothing from any network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext")]

from dpgram import __version__  # noqa: E402

project = "dpgram"
author = "the authors of dpgram"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "dpgram_site",
]
exclude_patterns = ["_ext", "_static"]
default_role = "code"
smartquotes = False  # "--dry-run" has two hyphens
highlight_language = "text"

myst_enable_extensions = ["colon_fence", "deflist", "tasklist"]
myst_heading_anchors = 4

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings name the types, in words that people read
autodoc_default_options = {"members": True, "undoc-members": True, "inherited-members": True}
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"dpgram {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_logo": "mark.svg",
    "dark_logo": "mark.svg",
    "navigation_with_keys": True,
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# A type such as "array of shape (rows, columns)" names no attribute, although two classes have one of that name.
suppress_warnings = ["ref.python"]
