"""Builds the HTML site as tools/site does, strictly, and follows every link, anchor and picture of it."""

import html
import html.parser
import re
import subprocess
import tempfile
import unittest
import urllib.parse
from pathlib import Path

from support.job import SOURCE, main, skip


class Page(html.parser.HTMLParser):
    """What a page offers to links, and where its own lead."""

    def __init__(self, file):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        if tag in ("a", "img", "link", "script") and (target := attributes.get("href") or attributes.get("src")):
            self.links.append(target)
            if tag != "a":
                self.loaded.append(target)


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="dtrun-test-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = Path(cls.scratch.name) / "site"
        cls.built = subprocess.run([SOURCE / "tools/site", cls.folder], capture_output=True, text=True)
        if cls.built.returncode == 2 and "tools/setup develop" in cls.built.stderr:
            skip(cls.built.stderr.strip())

    def setUp(self):
        self.assertEqual(self.built.returncode, 0, self.built.stderr)

    def pages(self):
        return {file: Page(file) for file in self.folder.glob("**/*.html")}

    def test_builds_without_a_warning(self):
        self.assertEqual(self.built.stderr, "")
        self.assertTrue((self.folder / "index.html").exists())
        for page in (SOURCE / "docs").glob("**/*.md"):
            self.assertTrue((self.folder / page.relative_to(SOURCE).with_suffix(".html")).exists(), page)

    def test_links_anchors_and_pictures_hold(self):
        pages, followed = self.pages(), 0
        for file, page in pages.items():
            for link in page.links:
                place = urllib.parse.urlsplit(link)
                if place.scheme or place.netloc:
                    continue
                target = (file.parent / urllib.parse.unquote(place.path)).resolve() if place.path else file
                self.assertTrue(target.exists(), f"{file.relative_to(self.folder)}: {link}")
                if place.fragment and target in pages:
                    self.assertIn(place.fragment, pages[target].ids, f"{file.relative_to(self.folder)}: {link}")
                followed += 1
        self.assertGreater(followed, 1000)

    def test_a_dark_system_has_dark_pages(self):
        style = (self.folder / "_static/styles/furo.css").read_text()
        self.assertRegex(style, r"prefers-color-scheme: dark\) *{\s*body:not\(\[data-theme=\"?light\"?\]\) *{[^}]*--color-background-primary: *#1")
        self.assertIn("color-scheme: dark", (self.folder / "_static/style.css").read_text())  # pictures follow it

    def test_the_script_of_the_theme_is_no_module(self):
        """A page loads it as a plain script: a line that imports ends it, and then nothing switches the colours."""
        self.assertNotRegex((self.folder / "_static/scripts/furo.js").read_text(), r"(?m)^import ")

    def test_links_between_pages_show_titles(self):
        for file in self.pages():
            if "docs" in file.relative_to(self.folder).parts:
                self.assertNotRegex(file.read_text(), r'<span class="(doc )?std std-doc">[\w-]+\.md<', file)

    def test_the_list_of_changes_is_found_last_and_blocks_can_be_copied(self):
        self.assertIn('page === "CHANGELOG"', (self.folder / "_static/language_data.js").read_text())
        for script in "copy.js", "tables.js":
            self.assertIn(f"_static/{script}", (self.folder / "docs/tutorial.html").read_text())

    def test_loads_nothing_from_other_servers(self):
        for file, page in self.pages().items():
            self.assertEqual([link for link in page.loaded if urllib.parse.urlsplit(link).netloc], [], file)

    def text(self, page):
        """As a reader sees it, with single spaces."""
        body = (self.folder / page).read_text().partition('<article role="main">')[2].partition("</article>")[0]
        return " ".join(html.unescape(re.sub(r"<[^>]*>", "", body)).split())

    def test_the_reference_has_each_declaration_with_its_text(self):
        for page, texts in {
            "c": ["dtrun_allreduce", "recv[i] on every rank = reduction of send[i] over all ranks.",
                  "DTRUN_API dtrun_status dtrun_allreduce(dtrun_comm* comm, const void* send,", "dtrun_work_release"],
            "cpp": ["A set of ranks. A cheap handle,", "class Communicator {", "void barrier() const;", "class Work {"],
            "plugin": ["constexpr std::uint64_t Bits(std::initializer_list<int> values);",
                       "class Failure : public std::runtime_error {",
                       "What the backend can do. Whether it can abort", "RunCollective"],
            "abi": ["dtrun_backend_caps", "What the backend can do. Bit v of a mask is enum value v.", "DTRUN_SUM to DTRUN_LOR",
                    "typedef struct dtrun_launcher {"],
            "python": ["Communicator.allreduce", "def allreduce(self, send:", "JobFailed", "def allreduce_async_(", "Joins the job"],
        }.items():
            shown = self.text(f"docs/reference/{page}.html")
            for text in texts:
                self.assertIn(text, shown, page)
            self.assertNotRegex(shown, r"\bnamespace internal|\bprivate:|static_assert|CallQueue::", page)

    def test_the_reference_misses_no_function(self):
        shown = self.text("docs/reference/c.html")
        headers = "".join((SOURCE / f"sdk/include/dtrun/{name}.h").read_text() for name in ("dtrun", "device"))
        names = re.findall(r"^DTRUN_API .*?(\w+)\(", headers, re.M)
        self.assertGreater(len(names), 50)
        self.assertEqual([name for name in names if f"{name}(" not in shown], [])

    def test_search_finds_names_of_the_reference(self):
        index = (self.folder / "searchindex.js").read_text()
        for name in ("dtrun_allreduce", "dtrun_backend_caps", "subcommunicator", "grouped_allreduce"):
            self.assertIn(name, index)

    def test_every_example_is_listed(self):
        shown, links = self.text("docs/examples.html"), Page(self.folder / "docs/examples.html").links
        files = [*SOURCE.glob("configs/*.toml"), *(file.parent for file in SOURCE.glob("sdk/examples/*/CMakeLists.txt"))]
        self.assertEqual([file.name for file in files if str(file.relative_to(SOURCE)) not in shown], [])
        self.assertEqual([page.name for page in SOURCE.glob("docs/tasks/*.md") if f"tasks/{page.stem}.html" not in links], [])

    def test_every_fence_is_a_block_of_code(self):
        for file in self.pages():
            if file.name != "023-site.html":  # quotes one
                self.assertNotIn("```", file.read_text(), file)


if __name__ == "__main__":
    main()
