"""Every case of the conformance suites cites rules of docs/abi.md, and only those that it has; no id stands twice.

    abi_rules_test.py RULES SUITES

RULES is docs/abi.md, SUITES the folder of the suites. Prints the rules that no case cites, which is no failure: some
bind dtrun, and some are proven by other tests.
"""

import pathlib
import re
import sys
import unittest

PAGE, SUITES = (pathlib.Path(word) for word in sys.argv[1:3])

RULE = re.compile(r"^- \*\*([A-Z]\d+)\*\*", re.M)
# Suite, name (a literal or an expression), rules.
CASE = re.compile(r'\bAddCase\(\s*"(?P<suite>\w+)",\s*(?P<name>[^,]+),\s*(?:"(?P<rules>[^"]*)",)?')
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

    def test_prints_what_no_case_cites(self):
        cited = {rule for all_cited in cases().values() for one in all_cited for rule in one or ()}
        left = [rule for rule in ids() if rule not in cited]
        print(f"{len(cited)} rules are proven by cases of the suites; no case cites:", *left)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
