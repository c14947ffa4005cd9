"""The site: `uv run nox -s docs` builds it into build/site.

docs/**/*.md ──MyST──┐
docstrings ──apipages──▶ docs/api/*.rst ──autodoc──┴──▶ Sphinx, Furo ──▶ build/site, with llms.txt
"""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "sabir"
author = "the authors of sabir"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "api_pages",
    "docstrings",
    "llms_txt",
]
exclude_patterns = ["README.md", "_ext"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a table of fields below "###" may follow a title

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
toc_object_entries = False  # with the members of all classes, building takes three times as long

html_theme = "furo"
html_title = "sabir"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "native"
