"""Runs the commands of the documentation.

A fence "```LANG file=NAME" is written to NAME; each line of a fence "```sh run" is run in
the same folder and must succeed, or exit with N where the fence says "fails=N".
"""

import os
import re
import subprocess

from support.job import BUILD, DTRUN, SOURCE, JobTest, main

PAGES = ["README.md", "docs/command-line.md", "docs/tutorial.md", "docs/bench.md", "docs/failures.md", "docs/mpi.md",
         "docs/stability.md", *sorted(str(page.relative_to(SOURCE)) for page in SOURCE.glob("docs/tasks/*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n]+)\n(?P<body>.*?)^```$", re.M | re.S)


class Docs(JobTest):
    def test_every_command_of_every_page(self):
        for page in PAGES:
            ran = 0
            for fence in FENCE.finditer((SOURCE / page).read_text()):
                words = dict(word.partition("=")[::2] for word in fence["info"].split())
                if "file" in words:
                    self.write(fence["body"], words["file"])
                elif "run" in words:
                    for command in fence["body"].strip().splitlines():
                        self.run_command(page, command, int(words.get("fails", 0)))
                        ran += 1
            self.assertGreater(ran, 0, f"{page} has no command to run")

    def run_command(self, page, command, code):
        environment = self.environment()
        environment["PATH"] = f"{DTRUN.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"{page}: {command}\n{done.stdout}\n{done.stderr}")

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
