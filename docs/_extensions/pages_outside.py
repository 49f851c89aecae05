"""Links from the pages to files of the repository that are not pages of the site, and pages that are such files.

The Markdown files are read on a code host, too, where `../examples/sweep.toml` is a link like any other. On the site
such a file becomes a download, a Markdown file that is also a page becomes a link to that page, and a folder only its
name. A page that consists of one include directive is that file.
"""

import os
import re
from functools import partial
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
# Markdown files outside docs/, and the page that a link to them leads to.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "results/README.md": "reproduction.md",
    "results/quick/claims.md": "claims.md",
}
INCLUDE = re.compile(r"```\{include\} (\S+)\n```")
LINK = re.compile(r"(!?)\[([^\]\n]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def read_page(app, name, source):
    page, text = DOCS / f"{name}.md", source[0]
    folder = page.parent
    if included := INCLUDE.fullmatch(text.strip()):
        file = (folder / included.group(1)).resolve()
        text, folder = file.read_text(encoding="utf-8"), file.parent
    source[0] = LINK.sub(partial(link_on_the_site, folder, page.parent), text)


def link_on_the_site(folder, here, match):
    image, text, target, anchor = match.group(1), match.group(2), match.group(3), match.group(4) or ""
    path = (folder / target).resolve()
    if not path.exists():  # an address within the site, or a mistake, which Sphinx reports
        return match.group(0)
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
    if path.is_dir():
        path, name = path / "README.md", f"{name}/README.md"
        if not path.exists():
            return text
    if name in PAGES:
        path = DOCS / PAGES[name]
    return f"{image}[{text}]({os.path.relpath(path, here)}{anchor})"


def setup(app):
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
