"""Every case of the conformance suites cites rules of docs/abi.md, and only those that it has; no id stands twice; and each
rule has a broken plugin, or a line in docs/abi-tests.md that says why not and names what holds it.

    abi_rules_test.py RULES SUITES

RULES is docs/abi.md, SUITES the folder of the suites.
"""

import importlib.util
import pathlib
import re
import sys
import unittest

PAGE, SUITES = (pathlib.Path(word) for word in sys.argv[1:3])

RULE = re.compile(r"^- \*\*([A-Z]\d+)\*\*", re.M)
# Suite, name (a literal or an expression), rules.
CASE = re.compile(r'\bAddCase\(\s*"(?P<suite>\w+)",\s*(?P<name>[^,]+),\s*(?:"(?P<rules>[^"]*)",)?')
# A line of the table of rules without a broken plugin: the rules, why, what holds them.
HELD = re.compile(r"^\| ((?:[A-Z]\d+(?:, )?)+) \| (.*) \|(.*)\|$", re.M)
FILE = re.compile(r"`((?:core|sdk|tests)/[^`]+)`")
MENTION = re.compile(r"(?<![\w.`/-])[A-Z]\d+(?![\w.`])")


def ids():
    return RULE.findall(PAGE.read_text(encoding="utf-8"))


def cases():
    """Case -> one list of ids for each registration, None where it has no literal of them."""
    found = {}
    for file in sorted(SUITES.glob("*_suite.cc")):
        for case in CASE.finditer(file.read_text(encoding="utf-8")):
            rules = case["rules"]
            name = f"{file.name}: {case['suite']}.{case['name']}"
            found.setdefault(name, []).append(None if rules is None else rules.split(", "))
    return found


def broken():
    """The rules that a plugin of the kit breaks."""
    spec = importlib.util.spec_from_file_location("faults", SUITES / "broken" / "faults.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {rule for _, rules, _ in module.FAULTS.values() for rule in rules.split()}


class Rules(unittest.TestCase):
    def test_no_id_stands_twice(self):
        listed = ids()
        self.assertGreater(len(listed), 100, f"{PAGE} has hardly a rule; is RULE still how it writes them?")
        self.assertEqual([rule for rule in set(listed) if listed.count(rule) > 1], [])

    def test_a_section_counts_without_a_gap(self):
        numbers = {}
        for rule in ids():
            numbers.setdefault(rule[0], []).append(int(rule[1:]))
        for letter, found in numbers.items():
            self.assertEqual(found, list(range(1, len(found) + 1)), f"rules {letter}; a withdrawn one keeps its line")

    def test_the_page_mentions_only_rules_that_it_has(self):
        mentioned = set(MENTION.findall(PAGE.read_text(encoding="utf-8")))
        self.assertEqual(mentioned - set(ids()), set())

    def test_every_case_cites_rules_of_the_page(self):
        listed = set(ids())
        found = cases()
        self.assertGreater(len(found), 40, f"{SUITES} has hardly a case; is CASE still how it registers them?")
        for name, all_cited in found.items():
            for cited in all_cited:
                with self.subTest(case=name):
                    self.assertIsNotNone(cited, "cites no rule: AddCase(suite, name, \"C4, F2\", ...)")
                    self.assertEqual([rule for rule in cited if rule not in listed], [], f"{PAGE.name} lacks them")

    def test_every_rule_has_a_broken_plugin_or_a_reason(self):
        page = (PAGE.parent / "abi-tests.md").read_text(encoding="utf-8")
        explained = [rule for rules, _, _ in HELD.findall(page) for rule in rules.split(", ")]
        self.assertGreater(len(explained), 20, "is HELD still how the page writes its table?")
        self.assertEqual([rule for rule in explained if explained.count(rule) > 1], [])
        self.assertEqual(broken() & set(explained), set(), "have a broken plugin and a reason why there is none")
        self.assertEqual(set(ids()) - broken() - set(explained), set(), "have neither a broken plugin nor a reason")
        self.assertEqual((broken() | set(explained)) - set(ids()), set(), f"{PAGE.name} lacks them")

    def test_what_holds_a_rule_is_there(self):
        page = (PAGE.parent / "abi-tests.md").read_text(encoding="utf-8")
        for rules, why, held in HELD.findall(page):
            self.assertTrue(why.strip(), rules)
            self.assertTrue(held.strip() or set(rules.split(", ")) & {"E6", "P3"}, f"nothing holds {rules}")
        self.assertEqual([name for name in FILE.findall(page) if not (PAGE.parent.parent / name).exists()], [])

    def test_every_point_of_the_review_has_a_test(self):
        page = (PAGE.parent / "abi-tests.md").read_text(encoding="utf-8")
        points = re.findall(r"^\| (\d+) .*\|(.*)\|$", page, re.M)
        self.assertEqual([int(number) for number, _ in points], list(range(1, 18)))
        for number, tests in points:
            self.assertRegex(tests, FILE, f"point {number}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
