"""Sentences that people read stand in tests/prose: no assertion quotes one, and every entry belongs to a case."""

import ast
import re
import unittest
from pathlib import Path

from support.golden import PROSE, GoldenTest, read
from support.job import main

FILES = sorted(Path(__file__).parent.glob("test_*.py"))
ASSERTS = ("assert", "golden", "check", "refused", "expect")
UNITTEST = dir(unittest.TestCase)
WORD = r"[A-Za-z][A-Za-z']*"
SENTENCE = re.compile(rf"(?<![\w'./=-])(?:{WORD}[,;:.]? ){{4}}{WORD}(?![\w/=-])")


def quoted(call):
    """Texts in the arguments of a call that compare with what dtrun prints; not the message of a failed assertion."""
    name = call.func.attr
    for argument in call.args[:1 if name in ("assertTrue", "assertFalse", "assertIsNone") else 2 if name in UNITTEST else None]:
        joined = {id(part) for node in ast.walk(argument) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(argument):
            if isinstance(node, ast.JoinedStr):
                yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in joined:
                yield node.lineno, node.value


class Prose(GoldenTest):
    maxDiff = None

    def test_no_assertion_quotes_a_sentence(self):
        found = []
        for file in FILES:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith(ASSERTS):
                    found += [f"{file.name}:{line}: {text}" for line, text in quoted(node) if SENTENCE.search(text)]
        self.assertEqual(found, [], "use golden(), and assert the facts of these texts (tests/README.md)")

    def test_every_entry_belongs_to_a_case_that_compares_it(self):
        strays = []
        for file in sorted(PROSE.glob("*.txt")):
            tree = ast.parse((PROSE.parent / f"test_{file.stem}.py").read_text())
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            calls = {one.name: {node.attr for node in ast.walk(one) if isinstance(node, ast.Attribute)} for one in functions}
            compares = {"golden", "golden_lines", "golden_error"}
            while more := {name for name, called in calls.items() if called & compares} - compares:
                compares |= more
            strays += [f"{file.name}: {heading}" for heading in read(file) if heading.split()[0].split(".")[1] not in compares]
        self.assertEqual(strays, [], "entries that no case compares: remove them")


if __name__ == "__main__":
    main()
