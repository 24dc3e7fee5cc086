"""The reference of the C and C++ headers, as Markdown: nothing is compiled. conf.py appends it to the pages of docs/reference/.

An entry of a header is a comment and the declarations
that follow it without an empty line; bodies of functions, private members and the namespaces `detail` and `internal` are left out.
"""

import re
import textwrap
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HEADERS = SOURCE / "sdk/include/dtrun"
PAGES = {"c": ["dtrun.h", "device.h", "failure.h"], "cpp": ["dtrun.hpp", "work.hpp", "group.hpp", "on_stream.hpp"], "abi": ["abi/*.h"],
         "plugin": ["plugin.hpp", "plugin/*.hpp", "algorithms.hpp", "kernels.hpp", "interfaces.hpp"]}  # fmt: skip

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|[{}();]', re.S)
COMMENT = re.compile(r"[ \t]*(?:/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)[ \t]*\n", re.S)
MACRO = re.compile(r"#define (?:[^\n]*\\\n)*[^\n]*\n")
BODY = re.compile(r"\)((?:\s(?:const|noexcept|override|final))*)(\s-> [\w:<>*& ]+)?(?:\s*:\s(?!:)[^;]*?[)}])?\s*(?=\{)")
UNLISTED = re.compile(r"^\s*(?:static_assert\(|(?:template <.*?>\s*)?(?:class|struct) \w+;)")
NAMESPACE = re.compile(r"^ *(?:inline )?namespace ?(?P<name>[\w:]*)[^{};\n]*\{", re.M)


def closed(text, start):
    """Behind the brace that closes the one at `start`."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise ValueError(f"no end of: {text[start : start + 80]}")


def without_bodies(text):
    """`text` without what only a compiler reads."""
    while hidden := re.search(r"^ *namespace (?:(?:detail|internal) )?\{", text, re.M):
        text = text[: hidden.start()] + text[closed(text, hidden.end() - 1) :]
    while scope := NAMESPACE.search(text):
        end = closed(text, scope.end() - 1)
        text = text[: scope.start()] + textwrap.dedent(text[scope.end() : end - 1]) + text[end:]
    out, at = "", 0
    while body := BODY.search(text, at):
        if "//" in text[text.rfind("\n", 0, body.start()) : body.start()]:
            out, at = out + text[at : body.start() + 1], body.start() + 1
            continue
        out += f"{text[at : body.start()]}){body[1]}{body[2] or ''};"
        at = closed(text, body.end())
    text = re.sub(r"(?m)^ *// namespace .*\n", "", out + text[at:])
    while private := re.search(r"^ *(?:private|protected):\n", text, re.M):
        depth = 0
        for token in re.finditer(r"[{}]|^ *public:\n", text[private.end() :], re.M):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if depth < 0 or (depth == 0 and "public" in token[0]):
                break
        text = text[: private.start()].rstrip() + "\n" + text[private.end() + token.start() :]
    return text


def declaration_end(text, start):
    """Behind the line on which the declaration at `start` ends."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(token[0], 0)
        if token[0] == ";" and depth == 0:
            return text.find("\n", token.end()) + 1 or len(text)
    raise ValueError(f"no end of: {text[start : start + 80]}")


def entries(text):
    """(comment, declarations) in their order; a comment that stands alone has none."""
    at, comment, group = 0, "", []
    while at < len(text):
        if text.startswith("\n", at) or (found := COMMENT.match(text, at)):
            if comment or group:
                yield comment, group
            end = at + 1 if text.startswith("\n", at) else found.end()
            comment, group = text[at:end].strip(), []
        elif found := MACRO.match(text, at):
            end = found.end()
            if not re.fullmatch(r"#define \w+_H\n", found[0]):
                group.append(found[0])
        elif found := re.compile(r'[ \t]*(#|extern "C" \{|\}|//)([^\n]*\\\n)*[^\n]*\n?').match(text, at):
            end = found.end()
        else:
            end = declaration_end(text, at)
            if not UNLISTED.search(text[at:end]) and "::" not in name(text[at:end]):  # a member that is defined outside its class
                group.append(text[at:end])
            elif not group:
                comment = ""
        at = end
    if comment or group:
        yield comment, group


def name(declaration):
    text = re.sub(r"/\*.*?\*/|//[^\n]*|__attribute__\(\(.*?\)\)\)?", "", declaration, flags=re.S)
    text = re.sub(r"^\s*template <.*?>\n", "", text, flags=re.S)
    if found := re.match(r"(?:typedef )?enum \{(.*)\}", text, re.S):
        values = re.findall(r"(?:^|,)\s*(\w+)", found[1])
        return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
    for pattern in (r"#define (\w+)", r"using (?:[\w:]+::)?(\w+)", r"typedef [^{]*\(\*(\w+)\)", r"typedef [^{;]*?(\w+);",
                    r"(?:typedef )?(?:enum class|enum|struct|class|union) ([\w:]+)", r"[^=({]*?(operator[^(]+|[\w:~]+)\("):
        if found := re.match(r"\s*" + pattern, text):
            return found[1]
    return re.match(r"[^=[{;]*?(\w+)\s*[=[{;]", text)[1]


def prose(text):
    """Plain text as Markdown: what is indented is a block, and no character but ` is markup."""
    out = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        paragraph = re.sub(r"\n +", "\n  ", paragraph) if paragraph.startswith("- ") else paragraph
        for indented, lines in re.findall(r"((?:^ {2,}\S.*\n?)+)|((?:^(?! {2}).*\n?)+)", paragraph, re.M):
            escaped = [part if part.startswith("`") else re.sub(r"([\\*_<>\[\]#|{}$~])", r"\\\1", part)
                       for part in re.split(r"(`[^`\n]+`)", lines)]
            out.append(f"```text\n{textwrap.dedent(indented).rstrip()}\n```" if indented else "".join(escaped).strip())
    return "\n\n".join(out).replace("\n```\n\n```text\n", "\n\n")  # a block with an empty line


def plain(comment):
    """Without its marks."""
    lines = [re.sub(r"^\s*(?:/\*|\*/|\*|//) ?", "", line) for line in comment.removesuffix("*/").split("\n")]
    return "\n".join(lines) if comment.startswith("//") else lines[0] + "\n" + textwrap.dedent("\n".join(lines[1:]))


def header(file):
    text = file.read_text()
    opening = COMMENT.match(text)
    words = plain(opening[0].strip()).split(" - ", 1)[1]
    yield f"## {file.relative_to(HEADERS.parent)}\n\n{prose(words[0].upper() + words[1:])}"
    for comment, group in entries(without_bodies(text[opening.end() :])):
        words = plain(comment).strip()
        if ruled := re.match(r"-{4} (.*?) -*$", words):
            words = ruled[1].capitalize() + "."
        if group:
            yield "### " + ", ".join(f"`{each}`" for each in dict.fromkeys(map(name, group)))
        if words:
            yield prose(words)
        if group:
            yield f"```{'c' if file.suffix == '.h' else 'cpp'}\n{textwrap.dedent(''.join(group)).rstrip()}\n```"


def files(page):
    """What a page is made of."""
    return [file for pattern in PAGES[page] for file in sorted(HEADERS.glob(pattern))]


def text(page):
    return "\n\n".join(part for file in files(page) for part in header(file))
