"""Texts of the program, made safe for messages."""

import re

# Control characters, those that change the order or the line of what follows, as Printable of core/base/text.cc has them, and
# halves of characters, which no stream takes.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with terminal control characters escaped, so that it stays on its line and in its order."""
    return _OBEYED.sub(lambda found: "\\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
