"""How Sphinx builds these pages: `make docs`. Nothing is fetched, neither to build them nor to read them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

os.environ["NUMBA_DISABLE_JIT"] = "1"  # signatures and docstrings are all that is needed: compile nothing

import rankloop  # noqa: E402

project = "rankloop"
author = "The rankloop authors"
copyright = author  # noqa: A001
version = release = rankloop.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
    "api_pages",
    "code_links",
    "docstring_sections",
    "mathml",
]
exclude_patterns = ["_ext", "images/*.py"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = True
# Without a network there is no list of what other projects document; only names of our own are checked.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!rankloop).*"),
    (
        r"py:class",
        r"rankloop\.(environments|games|measures|serving)\.[a-z_.]+\.\w+",
    ),  # types that are not public
    (r"py:class", r"rankloop\.kernels\.jit\.Function"),
    (r"py:class", r"rankloop\.rankers\.linear\.Weighted"),
    (r"py:class", r"rankloop\.logs\.off_policy\.Orders"),
    (r"py:class", r"rankloop\.rankers\.candidates\.SomeItems"),
]
suppress_warnings = ["myst.strikethrough"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4  # a link may lead to any heading, as on GitHub: page.md#the-heading

# A word in single backticks is code, in docstrings as in Markdown.
default_role = "literal"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "array_like"}
python_maximum_signature_line_length = 80  # beyond, each parameter has a line of its own
autosummary_generate = False  # `api_pages` writes them, from `__all__`
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
html_math_renderer = "mathml"

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "alpha"
bibtex_reference_style = "label"

templates_path: list[str] = []
html_title = "rankloop"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["rankloop.css"]
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(
    HERE / "scorer.js"
)  # a line of text stands below each result, but not for pages on disk
html_theme_options = {
    "show_nav_level": 1,
    "navigation_depth": 3,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "use_edit_page_button": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
