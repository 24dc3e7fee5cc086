"""tools/release stops before it builds anything if the tree, the version and the notes do not agree; else it fills one folder.

What it builds with is replaced by scripts that write small files: the tests `packages`, `wheel` and `site` try the real ones.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.job import SOURCE, main

FILES = {"CMakeLists.txt": "project(dtrun VERSION 7.2.1 LANGUAGES C CXX)\n", "python/dtrun/_version.py": '__version__ = "7.2.1"\n',
         "CHANGELOG.md": "# Changes\n\n## Not released\n\n## 7.2.1\n", "docs/release-notes/7.2.md": "# dtrun 7.2\n"}

# By name, what a release starts.
BUILDERS = {"tools/package": '[ $1 = wheel ] && touch "$2/dtrun-7.2.1-py3-none-any.whl" || touch "$2/dtrun-7.2.1.tar.gz"',
            "tools/site": 'mkdir -p "$1" && echo page > "$1/index.html"',
            "bin/cmake": '[ $1 != --build ] || { mkdir -p build/package/packages; touch build/package/packages/dtrun_7.2.1-1_amd64.deb; }'}


class Release(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="dtrun-test-")
        self.addCleanup(scratch.cleanup)
        self.tree = Path(scratch.name)
        for name, text in FILES.items():
            self.write(name, text)
        self.write("tools/setup", "#!/bin/sh\necho builds >&2\nexit 3\n").chmod(0o755)
        self.write(".gitignore", "/build/\n")
        shutil.copy(SOURCE / "tools/release", self.tree / "tools/release")
        self.git("init", "-q")
        self.commit()

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], cwd=self.tree, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a state")

    def release(self, *words):
        path = f"{self.tree}/bin:{os.environ['PATH']}"
        environment = dict(os.environ, PATH=path, GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@example.org")
        return subprocess.run([self.tree / "tools/release", *words], capture_output=True, text=True, check=False, env=environment)

    def assert_stops(self, text, *words):
        done = self.release(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertNotIn("builds", done.stderr)

    def test_builds_where_all_agree(self):
        done = self.release("--tag")
        self.assertEqual((done.returncode, done.stderr), (3, "builds\n"))

    def test_fills_a_folder_and_makes_the_tag(self):
        for name, script in {**BUILDERS, "tools/setup": "true"}.items():
            self.write(name, f"#!/bin/sh\n{script}\n").chmod(0o755)
        self.commit()
        done = self.release("--tag")
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.tree / "build/dtrun-7.2.1"
        files = ["RELEASE-NOTES.md", "SHA256SUMS", "dtrun-7.2.1-py3-none-any.whl", "dtrun-7.2.1-site.tar.gz", "dtrun-7.2.1.tar.gz",
                 "dtrun_7.2.1-1_amd64.deb"]
        self.assertEqual(sorted(file.name for file in folder.iterdir()), files)
        sums = (folder / "SHA256SUMS").read_text()
        self.assertEqual([name for name in files if f"  {name}\n" not in sums], ["SHA256SUMS"])
        pages = subprocess.run(["tar", "-tf", folder / "dtrun-7.2.1-site.tar.gz"], capture_output=True, text=True, check=True).stdout
        self.assertIn("dtrun-7.2.1-site/index.html\n", pages)
        tag = subprocess.run(["git", "cat-file", "-p", "v7.2.1"], cwd=self.tree, capture_output=True, text=True, check=True).stdout
        self.assertIn("\n# dtrun 7.2\n", tag)

    def test_versions_notes_and_changelog_agree(self):
        for name, text, says in (("python/dtrun/_version.py", '__version__ = "7.2.0"\n', "_version.py has 7.2.0"),
                                 ("CHANGELOG.md", "## Not released\n", "no section '## 7.2.1'"),
                                 ("docs/release-notes/7.2.md", "# dtrun 7.1\n", "does not begin with '# dtrun 7.2'")):
            self.write(name, text)
            self.commit()
            self.assert_stops(says)
            self.write(name, FILES[name])
            self.commit()

    def test_the_tree_is_committed_and_the_tag_is_new(self):
        self.write("README.md", "new\n")
        self.assert_stops("uncommitted changes")
        self.commit()
        self.git("tag", "v7.2.1")
        self.assert_stops("the tag v7.2.1 exists", "--tag")

    def test_the_folder_is_empty_and_options_are_known(self):
        self.assert_stops("is not empty", self.tree / "tools")
        self.assert_stops("unknown option '--push'", "--push")


if __name__ == "__main__":
    main()
