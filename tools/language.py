"""Finds what a machine can see of bad English: `tools/check --language`. Plain Python; reads files, changes none.

- words that the tree does not use, in comments, docstrings, pages and messages
- sentences of more than 30 words in messages (string literals of programs that are installed)
- cells of tables in pages with more than 200 characters, not counting the targets of links
- comments of core, plugins, launchers and tools, and docs/development.md, that name a source which is not in the tree

Text in backticks, fenced blocks, single words in quotes and raw literals of C++ are not read: they name things, or are code.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

WORDS = re.compile(r"\b(whose|whoever|whomever|nobody|somebody|comes? to|came to|for want of|none of them is|is told of)\b", re.I)
LONGEST_SENTENCE = 30  # words
LONGEST_CELL = 200  # characters
SOURCE_NAME = re.compile(r"(?<![\w./<{-])[\w/.-]*\w\.(?:h|cc|hpp)\b")
NAMES_SOURCES = re.compile(r"^(core|plugins|launchers|tools)/.*\.(h|cc)$|^core/README.md$|^docs/development.md$")
OTHERS_SOURCES = re.compile(r"^(src|torch|horovod|linux|netinet)/|^(cuda|cuda_runtime_api|mpi|nccl|nvml|slurm|plugin|posix_acl_xattr|sysexits)\.(h|cc)$")
GENERATED = {"docs/options.md"}  # its cells are the texts of options, which are read as messages where they stand
QUOTES = re.compile(r"(^|/)(third_party|corpus|golden)/|(^|/)testing/.*\.(txt|json)$|^tests/foreign_flags/")
TESTS = re.compile(r"_test\.(cc|py)$|(^|/)(tests?|testing[^/]*|fuzz|bench)(/|$)|(^|/)testing[^/]*$|^sdk/conformance/")
C = {".c", ".cc", ".h", ".hpp", ".rs", ".js", ".css"}
C_TOKEN = re.compile(r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"'
                     r'|(?<![\w\'])(?:u8|[uUL])?"(?P<text>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])\'', re.S)


def c_texts(source):
    """(line, is a message, text) of comments and string literals; neighbouring literals are one."""
    end, line, joined = 0, 1, None
    for token in C_TOKEN.finditer(source):
        between = source[end:token.start()]
        line += between.count("\n")
        text = token["text"]  # a raw literal is a script or JSON
        if text is None or joined is None or between.strip():
            if joined:
                yield joined[0], True, joined[1]
            joined = None
        if text is not None:
            joined = (joined[0], joined[1] + text) if joined else (line, text)
        elif token["line"] is not None or token["block"] is not None:
            yield line, False, re.sub(r"\n\s*\*?", " \n", token["line"] or token["block"] or "")
        line += token[0].count("\n")
        end = token.end()
    if joined:
        yield joined[0], True, joined[1]


def python_texts(source):
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, id(node) not in prose, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, True, "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], False, token.string[1:]


def page_texts(source):
    fenced = False
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, False, line


def toml_texts(source):
    """Comments, and what a list of known failures says itself; its other texts are those of programs."""
    for number, line in enumerate(source.splitlines(), 1):
        if said := re.match(r'\s*(?:what|fix) = "(.*)"$', line):
            yield number, True, said[1]
        elif comment := re.search(r"(?:^|\s)#(.*)", line):
            yield number, False, comment[1]


def script_texts(source):
    for number, line in enumerate(source.splitlines(), 1):
        if comment := re.search(r"(?:^|\s)#(.*)", line):
            yield number, False, comment[1]


def texts(name, source):
    suffix = Path(name).suffix
    if suffix in C:
        return c_texts(source)
    if suffix == ".py" or (not suffix and source.startswith("#!/usr/bin/env python")):
        return python_texts(source)
    if suffix == ".md":
        return page_texts(source)
    if suffix == ".toml":
        return toml_texts(source)
    return script_texts(source) if suffix in ("", ".txt", ".cmake", ".sh") and source.startswith(("#", "cmake", "add_", "dtrun_")) else ()


def long_sentences(text):
    text = re.sub(r"</?[a-z][^>]*>", ".\n", text)  # markup
    for sentence in re.split(r"[.:?!](?:\s|\\n|$)|\\n\\n|\n\n|\\n|\n\s*[-|]|\)\s", text):
        if len(words := re.findall(r"(?<![\w-])[A-Za-z][\w'-]*", sentence)) > LONGEST_SENTENCE:
            yield len(words), sentence


def long_cells(line):
    if line.startswith("|"):
        for cell in re.split(r"(?<!\\)\|", line)[1:-1]:
            shown = re.sub(r"\]\([^)]*\)", "]", cell.strip())
            if len(shown) > LONGEST_CELL:
                yield len(shown), shown


def findings(root, name, sources):
    """(line, kind, what) of each finding in the file `name`; `sources`: the names of all files, without their folders."""
    if QUOTES.search(name) or name in GENERATED | {"tools/language.py"}:
        return
    try:
        source = (root / name).read_text()
    except (UnicodeDecodeError, OSError):
        return
    for line, is_message, text in texts(name, source):
        if not is_message and NAMES_SOURCES.search(name):
            for word in SOURCE_NAME.findall(text):
                if Path(word).name not in sources and not OTHERS_SOURCES.search(word):
                    yield line, "source", f"{word} is not in the tree"
        plain = re.sub(r"`[^`]*`|(?<!\w)'\w+'|\"\w+\"", "", text)
        if not is_message or " " in text.strip():
            for found in WORDS.finditer(plain):
                yield line + plain[:found.start()].count("\n"), "word", found[0]
        if is_message and " " in text and not TESTS.search(name):
            for count, sentence in long_sentences(text):
                yield line, "sentence", f"{count} words: {sentence.strip()[:60]}..."
        if name.endswith(".md"):
            for count, cell in long_cells(text):
                yield line, "cell", f"{count} characters: {cell[:60]}..."


def check(root, names):
    """Prints each finding as file:line, and gives how many there are of each kind and room."""
    counts = {}
    sources = {path.name for top in root.iterdir() if top.name != "build" for path in top.rglob("*.[hc]*")}
    for name in names:
        for line, kind, what in findings(root, name, sources):
            print(f"{name}:{line}: {kind}: {what}")
            parts = name.split("/")
            room = "/".join(parts[:2 if len(parts) > 2 else 1])
            counts[room, kind] = counts.get((room, kind), 0) + 1
    return counts
