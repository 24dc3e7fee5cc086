"""Runs the commands of the documentation, and follows its links."""

import re
import subprocess

from support.job import BUILD, SOURCE, JobTest, main
from support.pages import run_page

PAGES = ["README.md", "docs/command-line.md", "docs/tutorial.md", "docs/bench.md", "docs/failures.md", "docs/mpi.md",
         "docs/stability.md", *sorted(str(page.relative_to(SOURCE)) for page in SOURCE.glob("docs/tasks/*.md"))]


class Docs(JobTest):
    def test_every_command_of_every_page(self):
        for page in PAGES:
            run_page(self, page)

    def assert_links(self, pages):
        for page in pages:
            for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page}: {target}")

    def test_links_between_pages_lead_somewhere(self):
        self.assert_links([SOURCE / "README.md", *SOURCE.glob("docs/**/*.md"), *SOURCE.glob("core/*.md")])

    def test_links_between_installed_pages_lead_somewhere(self):
        subprocess.run(["cmake", "--install", BUILD, "--component", "docs", "--prefix", self.folder / "prefix"],
                       check=True, capture_output=True)
        pages = list((self.folder / "prefix").glob("**/*.md"))
        self.assertIn("tutorial.md", [page.name for page in pages])
        self.assert_links(pages)

    def test_pictures_are_as_their_sources_draw_them(self):
        done = subprocess.run([SOURCE / "tools/pictures", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
