"""How the documentation site is built: `make docs`."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import composcope

DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "composcope"
author = "The composcope developers"
project_copyright = "The composcope developers"
version = release = composcope.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "mathml",
    "pages_outside",
]
exclude_patterns = ["_build", "_extensions"]
default_role = "code"

# Pages are Markdown; formulas are $...$ and $$...$$.
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# The reference is made from docstrings, which are Markdown-like plain text.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"exclude-members": "__init__,__new__,__weakref__"}

html_theme = "furo"
html_title = f"composcope {version}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["../results/quick/report.html"]  # the report that is linked as a live example
html_show_sphinx = False
html_copy_source = False
templates_path = []
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f4d80", "color-brand-content": "#2f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#9dbcf0", "color-brand-content": "#9dbcf0"},
    "top_of_page_buttons": [],
}


# Markers in index.md, and the pages that are listed there unless index.md names them.
NOT_NAMED = {
    "TUTORIALS-NOT-NAMED-ABOVE": ["tutorials/*.md", "your_decoder.md", "monitor.md"],
    "PAGES-NOT-NAMED-ABOVE": ["*.md"],
}


def without_annotated(signature):
    """A signature with each `Annotated[type, conditions]` as its type."""
    while found := re.search(r"[\w.~]*\bAnnotated\[", signature):
        before, rest = signature[: found.start()], signature[found.end() :]
        depth, comma = 0, None
        for end, sign in enumerate(rest):
            if sign == "," and depth == 0 and comma is None:
                comma = end
            if sign == "]" and depth == 0:
                break
            depth += (sign in "[({") - (sign in "])}")
        signature = before + rest[:comma] + rest[end + 1 :]
    return signature


def setup(app):
    """Plainer docstrings and signatures, and pages that index.md does not name listed under "More"."""

    def as_plain_text(app, what, name, obj, options, lines):
        # Docstrings are read in editors and terminals: only their lists, backticks and examples are markup.
        lines[:] = [line if ">>>" in line else re.sub(r"([|*])", r"\\\1", line) for line in lines]

    def readable(app, what, name, obj, options, signature, returned):
        if signature is not None:
            return without_annotated(signature), returned and without_annotated(returned)

    def add_pages(app, name, source):
        if name == "index":
            named = set(re.findall(r"^\s*(?:.*<)?([\w/.-]+)>?\s*$", source[0], re.MULTILINE))
            for marker, patterns in NOT_NAMED.items():
                paths = sorted(path for pattern in patterns for path in DOCS.glob(pattern))
                pages = [str(path.relative_to(DOCS).with_suffix("")) for path in paths]
                rest = [page for page in pages if page not in named | {"index"}]
                named |= set(rest)
                source[0] = source[0].replace(marker, "\n".join(rest))
        if name == "figures/README":  # on a code host its table is enough
            order = lambda stem: (int(re.match(r"\d*", stem).group() or 99), stem)  # noqa: E731
            pages = sorted((path.stem for path in (DOCS / "figures").glob("*.md") if path.stem != "README"), key=order)
            source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"

    app.connect("source-read", add_pages)
    app.connect("autodoc-process-docstring", as_plain_text)
    app.connect("autodoc-process-signature", readable)
