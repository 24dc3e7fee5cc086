"""A frozen header changes only with a minor of the ABI, a `since` note and a line in CHANGELOG.md.

    frozen_headers_test.py SOURCE            fails where a header differs from sdk/frozen_headers.txt
    frozen_headers_test.py SOURCE --write    renews the list, or says what the change still lacks

The list has, for each header, the ABI of its last change and the hash of its text. Comments, spaces and the numbers of
the ABI itself are not part of it. An ABI that CHANGELOG.md has under "Not released" may still change under its number.
"""

import hashlib
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

RENEW = "python3 sdk/tests/abi/frozen_headers_test.py . --write"


class Tree:
    def __init__(self, source):
        self.source = pathlib.Path(source)
        self.list = self.source / "sdk/frozen_headers.txt"
        self.include = self.source / "sdk/include"

    def headers(self):
        folder = self.include / "dtrun"
        found = [*(folder / "abi").glob("*.h"), folder / "abi.h", folder / "dtrun.h"]
        found.remove(folder / "abi/device.h")  # a draft
        return {str(file.relative_to(self.include)): file.read_text() for file in sorted(found) if file.exists()}

    def listed(self):
        lines = [line.split() for line in self.list.read_text().splitlines() if not line.startswith("#")]
        return {header: (abi, text) for header, abi, text in lines}

    def abi(self):
        base = (self.include / "dtrun/abi/base.h").read_text()
        return ".".join(re.search(rf"^#define DTRUN_ABI_{part} (\d+)u$", base, re.MULTILINE)[1] for part in ("MAJOR", "MINOR"))

    def is_unreleased(self, abi):
        section = re.search(r"^## Not released$(.*?)(?=^## |\Z)", (self.source / "CHANGELOG.md").read_text(), re.MULTILINE | re.DOTALL)
        return section is not None and re.search(rf"\bABI (is )?{re.escape(abi)}(?![\d.]*\d)", section[1]) is not None

    def lacks(self, header, text):
        """What a new or changed header still needs."""
        abi, listed, found = self.abi(), self.listed(), []
        may_change = self.is_unreleased(abi)
        if not may_change:
            if abi in (then for then, _ in listed.values()):
                found.append(f"a greater DTRUN_ABI_MINOR, for ABI {abi} is released")
            found.append("a line with 'ABI MAJOR.MINOR' under 'Not released' of CHANGELOG.md")
        if header in listed and not (may_change and listed[header][0] == abi) and f"since {abi}" not in text:
            found.append("'since MAJOR.MINOR' in the comment of what is new")
        return found

    def problems(self):
        listed, headers, found = self.listed(), self.headers(), []
        for header, text in headers.items():
            if header not in listed:
                found.append((header, "is not listed", self.lacks(header, text)))
            elif listed[header][1] != digest(text):
                found.append((header, f"is frozen, and has changed since ABI {listed[header][0]}", self.lacks(header, text)))
        found += [(header, "is frozen, and gone", ["the header: nothing of the ABI is ever removed"])
                  for header in sorted(listed.keys() - headers.keys())]
        return found

    def write(self):
        found = self.problems()
        if any(lacking for _, _, lacking in found):
            return tell(found)
        listed = self.listed()
        for header, _, _ in found:
            listed[header] = (self.abi(), digest(self.headers()[header]))
        head = [line for line in self.list.read_text().splitlines() if line.startswith("#")]
        self.list.write_text("\n".join([*head, *(" ".join((header, *listed[header])) for header in sorted(listed))]) + "\n")
        return ""


def digest(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"^#define DTRUN_ABI_M(AJOR|INOR) .*$", "", text, flags=re.MULTILINE)
    words = re.findall(r'"(?:\\.|[^"\\])*"|\w+|[^\s\w]', text)
    return hashlib.sha256(" ".join(words).encode()).hexdigest()


def tell(problems):
    return "\n".join(f"{header} {what}; " + ("it needs " + ", and ".join(lacking) if lacking else f"renew the list: {RENEW}")
                     for header, what, lacking in problems)


class FrozenHeaders(unittest.TestCase):
    def test_no_header_has_changed(self):
        problems = Tree(SOURCE).problems()
        self.assertEqual(problems, [], "\n" + tell(problems))


class TheGate(unittest.TestCase):
    """On a copy of the headers that has released its ABI."""

    def setUp(self):
        self.tree = Tree(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(Tree(SOURCE).include / "dtrun", self.tree.include / "dtrun")
        shutil.copy(Tree(SOURCE).list, self.tree.list)
        self.changelog(f"## Not released\n\n- a fix\n\n## 0.1.0\n\n- the plugin ABI is {self.tree.abi()}\n")
        if self.tree.problems():
            self.skipTest("because the headers have changed, as the other test says")

    def changelog(self, text):
        (self.tree.source / "CHANGELOG.md").write_text(text)

    def change(self, header, old, new):
        file = self.tree.include / "dtrun" / header
        text = file.read_text()
        self.assertRegex(text, old)
        file.write_text(re.sub(old, new, text, count=1))

    def append(self, note=""):
        self.change("abi/op.h", r"(\} dtrun_op;)", rf"  int32_t added; /* what it is{note} */\n\1")

    def raise_minor(self):
        major, minor = self.tree.abi().split(".")
        self.change("abi/base.h", rf"MINOR {minor}u", f"MINOR {int(minor) + 1}u")
        return f"{major}.{int(minor) + 1}"

    def test_comments_and_spaces_are_free(self):
        self.change("abi/op.h", r"/\* send, recv \*/", "/* of messages */")
        self.change("abi/op.h", r"int32_t kind;", "int32_t    kind;")
        self.assertEqual(self.tree.problems(), [])

    def test_a_change_alone_fails_and_is_not_listed(self):
        self.append()
        [(header, what, lacking)] = self.tree.problems()
        self.assertEqual(header, "dtrun/abi/op.h")
        self.assertIn("has changed since", what)
        self.assertRegex(" ".join(lacking), "greater DTRUN_ABI_MINOR.*CHANGELOG.*since MAJOR.MINOR")
        self.assertIn("needs", self.tree.write())
        self.assertEqual(len(self.tree.problems()), 1)

    def test_a_minor_alone_is_not_enough(self):
        self.append()
        self.raise_minor()
        self.assertRegex(self.tree.write(), "needs a line .*CHANGELOG.md, and 'since MAJOR.MINOR'")

    def test_a_change_with_minor_note_and_changelog_is_listed(self):
        self.append(f"; since {self.raise_minor()}")
        self.assertRegex(self.tree.write(), "needs a line .*CHANGELOG.md$")
        self.changelog(f"## Not released\n\n- ABI {self.tree.abi()}: dtrun_op.added\n\n## 0.1.0\n")
        self.assertIn("renew the list", tell(self.tree.problems()))
        self.assertEqual(self.tree.write(), "")
        self.assertEqual(self.tree.problems(), [])
        self.assertEqual(self.tree.listed()["dtrun/abi/op.h"][0], self.tree.abi())
        self.assertNotEqual(self.tree.listed()["dtrun/abi/host.h"][0], self.tree.abi())

    def test_an_unreleased_abi_may_still_change(self):
        self.append()
        self.changelog(f"## Not released\n\n- the plugin ABI is {self.tree.abi()}.\n\n## 0.0.1\n")
        self.assertEqual(len(self.tree.problems()), 1)
        self.assertEqual(self.tree.write(), "")
        self.assertEqual(self.tree.problems(), [])

    def test_no_header_comes_or_goes_unseen(self):
        (self.tree.include / "dtrun/abi/op.h").rename(self.tree.include / "dtrun/abi/operation.h")
        self.assertEqual([(header, what) for header, what, _ in self.tree.problems()],
                         [("dtrun/abi/operation.h", "is not listed"), ("dtrun/abi/op.h", "is frozen, and gone")])
        self.assertIn("nothing of the ABI is ever removed", self.tree.write())


if __name__ == "__main__":
    SOURCE = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--write"]:
        sys.exit(Tree(SOURCE).write() or 0)
    unittest.main(argv=sys.argv[:1])
