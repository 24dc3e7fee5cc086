"""How tools/site makes HTML of the Markdown pages: Sphinx with MyST and the theme Furo, all from Debian.

The source folder is the repository, so links between its pages hold as they stand. The order of pages is that of the links in
docs/README.md; pages of docs/ that it does not name come last. The pages of docs/reference/ go on with what headers.py and
packages.py read in the sources.
"""

import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import headers  # noqa: E402
import packages  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
INDEX = SOURCE / "docs/README.md"

project = "dtrun"
author = "dtrun's authors"
copyright = author
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "core/README.md", "plugins/*/README.md", "launchers/*/README.md"]
myst_heading_anchors = 4
highlight_language = "text"
pygments_style, pygments_dark_style = "xcode", "github-dark"  # in Furo's own some colours have a contrast of 3 to 1
nitpicky = True

smartquotes = False  # "auto" and --set stay as they are typed

html_theme = "furo"
html_title = "dtrun"
html_static_path = ["style.css", "copy.js", "tables.js"]
html_css_files = ["style.css"]
html_js_files = ["copy.js", "tables.js"]
html_search_scorer = str(SOURCE / "docs/site/scorer.js")
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

LINK = re.compile(r"\]\(([^)#:]+\.md)\)")
FILE_LINK = re.compile(r"\[[\w./-]+\.md\]\(([\w./-]+\.md)(#[\w-]+)?\)")


def sections():
    """(title, pages) of each section of docs/README.md."""
    named = []
    for section in INDEX.read_text().split("\n## ")[1:]:
        pages = [(SOURCE / "docs" / link).resolve() for link in LINK.findall(section)]
        named += pages
        yield section.split("\n")[0], pages
    yield "More", sorted(set((SOURCE / "docs").glob("*.md")) - {*named, INDEX})


def toctree(entries, caption=""):
    lines = ["", "", "```{toctree}", ":hidden:", f":caption: {caption}" if caption else "", "", *map(str, entries), "```", ""]
    return "\n".join(lines)


def titled(page, text):
    """`text` of `page`, with the title of the page in links that show the name of a file."""

    def link(match):
        target = (SOURCE / page).parent / match[1]
        title = re.search(r"^# (.+)$", target.read_text(), re.M) if target.exists() else None
        return f"[{title[1]}]({match[1]}{match[2] or ''})" if title else match[0]

    return FILE_LINK.sub(link, text)


def reference(page):
    """What the page of docs/reference/ goes on with, and the files it is made of."""
    return (packages.text(), packages.files()) if page == "python" else (headers.text(page), headers.files(page))


def adapt(app, page, text):
    """Adds the order of pages to the two indices, the reference to its pages, and the name of its file above a block."""
    text[0] = titled(page, text[0])
    if page.startswith("docs/reference/"):
        added, files = reference(page.rpartition("/")[2])
        text[0] += f"\n{added}\n"
        for file in files:
            app.env.note_dependency(str(file))
    if page == "README":
        text[0] += toctree(["docs/README"])
        for title, pages in sections():
            if pages:
                text[0] += toctree([page.relative_to(SOURCE).with_suffix("") for page in pages], title)
    if page == "docs/decisions/README":
        text[0] += toctree(link.removesuffix(".md") for link in LINK.findall(text[0]))
    text[0] = re.sub(r"^```(\w+) file=(\S+)\n(.*?)^```$", r"```{code-block} \1\n:caption: \2\n\n\3```", text[0], flags=re.M | re.S)


def mend_furo(static):
    """Debian's Furo 2022.12.07 is not bundled: its script is a module that pages load as a plain script, so that no line of it
    runs and there is no switch of colours; and its style has lost the dark colours of a dark system."""
    script, style = static / "scripts/furo.js", static / "styles/furo.css"
    lines = script.read_text().splitlines(keepends=True)
    if lines[0].startswith("import Gumshoe "):
        script.write_text((static / "scripts/gumshoe-patched.js").read_text() + "".join(lines[1:]))
    text = style.read_text()
    if "prefers-color-scheme" not in text:
        dark = re.search(r'body\[data-theme="dark"\] (\{[^}]*\})', text)[1]
        selector = "@media not print { @media (prefers-color-scheme: dark) { body:not([data-theme=\"light\"])"
        style.write_text(f"{text}\n{selector} {dark} }} }}\n")


def finish(app, error):
    if not error:
        mend_furo(Path(app.outdir) / "_static")
        shutil.copy(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app):
    app.connect("source-read", adapt)
    app.connect("build-finished", finish)
