"""The texts that people read: a test compares them whole with tests/prose/<test>.txt, and asserts only their facts itself.

`self.golden(text, *facts)` asserts the facts (the option, host, rank or value that the text must name, however it is worded) and
then the text. An entry of the file is named after the case and numbered in the order of its calls; a text that a case has compared
before needs no second entry. DTRUN_GOLDEN=write writes the entries of the cases that run and pass; read the difference.
"""

import difflib
import fcntl
import os
import re
import socket
import sys
import tempfile
import unittest
from pathlib import Path

PROSE = Path(__file__).resolve().parent.parent / "prose"
HEADING = "== "
PLACES = {"DTRUN_BUILD": "BUILD", "DTRUN_SOURCE": "SOURCE"}
VARIES = (  # what differs between runs and machines
    (r"fe80:[0-9a-f:]+", "fe80::X"),
    (rf"(?<![\w/.-]){re.escape(socket.gethostname())}(?![\w/-])", "THISHOST"),
    (rf"{re.escape(tempfile.gettempdir())}/[\w-]+", "TEMPORARY"),
    (r"\b\d{8}-\d{6}(-\d+)?\b", "RUN"),
    (r"\d{4}-\d\d-\d\d|(?<![\w:])\d\d:\d\d:\d\d(\.\d+)?(?![\w:])", "CLOCK"),
    (r"\b(pids? |process |thread )\d+", r"\1N"),
    (r"(?<=:)[1-9]\d{3,4}\b|(?<=(?:port|PORT) )\d+|(?<=ports )\d+", "PORT"),
    (r"\b\d+(\.\d+)? (us|ms|s|min)\b", "TIME"),
    (r"\bfor \d+(ms|s|m)\b", "for TIME"),
    (r"\b\d+(\.\d+)? ([MG]B|[kMG]?bit)/s", "RATE"),
    (r"( plugins that exist: ).*", r"\1..."),
    (r"\(PATH: [^)]*\)", "(PATH: ...)"),
    (r"(?m)^dtrun: (still )?\d+ of \d+ hosts joined.*\n", ""),  # where hosts are slow to join
    (r"(?m)^    \S+ \(compiled in.*\n", ""),  # the folder of an installed dtrun
    (r"(?m)^  (backend|library|from|binding|logs|note +OMP_NUM_THREADS)\b.*\n", ""),  # of the header, where no test looks for them
    (r"(?<![\d.])\d+\.\d+\.\d+(?![\d.]*\d)", "VERSION"),
    (r"(?<![\w.])/(?:[\w.-]+/)*python3(\.\d+)?(?![\w/])|\bpython ?3\.\d+", "python3"),
    (r"\btorchelastic_\w+/\w+", "torchelastic"),
    (r"(`ulimit -\w`, which is )\d+", r"\1N"),
    (r"0x[0-9a-f]{7,}", "ADDRESS"),
)


def normalised(text, folder=None):
    for path, name in (folder, "FOLDER"), *((os.environ.get(place), name) for place, name in PLACES.items()):
        text = text.replace(str(path), name) if path else text
    for pattern, name in VARIES:
        text = re.sub(pattern, name, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def read(file):
    """Heading -> text of each entry."""
    parts = re.split(rf"^{HEADING}(.*)\n", file.read_text() if file.exists() else "", flags=re.M)
    return {heading: text.rstrip("\n") for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


class GoldenTest(unittest.TestCase):
    folder = None
    golden_texts = ()  # the texts of this case in their order

    def run(self, result=None):
        """Runs the case. If it passes, its entries are written, or it has all of those that stand there."""
        result = result or self.defaultTestResult()
        told = lambda: sum(map(len, (result.failures, result.errors, result.skipped)))
        before = told()
        super().run(result)
        if self.golden_texts and told() == before:
            try:
                self.leave_golden()
            except AssertionError:
                result.addFailure(self, sys.exc_info())
        return result

    def golden(self, text, *facts):
        """Every fact is in the text, and the text is the entry of this call."""
        for fact in facts:
            self.assertIn(fact, text)
        text = normalised(text, self.folder)
        if text in self.golden_texts:
            return
        self.assertNotEqual(text, "")
        self.golden_texts = (*self.golden_texts, text)
        if os.environ.get("DTRUN_GOLDEN") != "write":
            expected = read(self.prose()).get(self.heading(len(self.golden_texts)), "")
            if text != expected:
                lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), str(self.prose()), "now", lineterm="")
                self.fail(f"the text of {self.heading(len(self.golden_texts))} differs; to accept it: DTRUN_GOLDEN=write python3 "
                          f"{sys.argv[0]} {self.heading(1)}\n" + "\n".join(lines))

    def golden_lines(self, text, *facts):
        """golden() of the lines that have all of the facts, sorted: where the others differ from run to run or from machine to machine."""
        lines = sorted({line for line in text.splitlines() if all(fact in line for fact in facts)})
        self.assertTrue(lines, f"no line with {facts} in\n{text}")
        self.golden("\n".join(lines))

    def prose(self):
        return PROSE / (Path(sys.modules[type(self).__module__].__file__).stem.removeprefix("test_") + ".txt")

    def heading(self, number):
        name = f"{type(self).__name__}.{self._testMethodName}"
        return name if number == 1 else f"{name} {number}"

    def leave_golden(self):
        now = {self.heading(number): text for number, text in enumerate(self.golden_texts, 1)}
        if os.environ.get("DTRUN_GOLDEN") != "write":
            left = [one for one in read(self.prose()) if one.split()[0] == self.heading(1) and one not in now]
            self.assertEqual(left, [], f"entries of {self.prose()} that the case no longer has")
            return
        PROSE.mkdir(exist_ok=True)
        with Path(__file__).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = {one: text for one, text in read(self.prose()).items() if one.split()[0] != self.heading(1)} | now
            order = sorted(entries, key=lambda one: (one.split()[0], int((one.split() + ["1"])[1])))
            self.prose().write_text("".join(f"{HEADING}{one}\n{entries[one]}\n" for one in order))
