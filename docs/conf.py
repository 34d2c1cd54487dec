"""Configuration of the documentation: ``make docs`` builds it into ``out/docs``."""

from __future__ import annotations

import os
import tempfile

import dcarray as dc

# Examples are executed as a user's first run: nothing cached before, two threads as on the smallest machine.
os.environ.setdefault("DCARRAY_CACHE_DIR", tempfile.mkdtemp(prefix="dcarray-docs-"))
os.environ.setdefault("DCARRAY_THREADS", "2")

project = "dcarray"
copyright = "the dcarray developers"
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
html_theme = "pydata_sphinx_theme"
html_title = "dcarray"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
exclude_patterns = ["_build"]

# Pages with code cells are run when the site is built; one that raises fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_remove_code_outputs = True  # a page has them as text, which a test compares
if all(device.kind != "opencl" for device in dc.devices()):
    nb_execution_excludepatterns = ["devices.md"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have them
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
default_role = "code"
