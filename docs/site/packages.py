"""The reference of the Python package, as Markdown: nothing is imported. conf.py appends it to docs/reference/python.md."""

import ast
from pathlib import Path

from headers import prose

SOURCE = Path(__file__).resolve().parents[2]
PACKAGES = [
    "dtrun", "dtrun.functions", "dtrun.spark", "dtrun.ray", "dtrun.torch", "dtrun.horovod.torch", "dtrun.horovod.tensorflow",
    "dtrun.horovod.keras",
]  # fmt: skip


def module(dotted):
    """The file of a module or package."""
    path = SOURCE / "python" / dotted.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def public(dotted):
    """{name: its def or class} of a module, with those that it imports from the package."""
    found, tree = {}, ast.parse(module(dotted).read_text())
    package = dotted if module(dotted).name == "__init__.py" else dotted.rpartition(".")[0]
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.level and node.module:
            names = package.split(".")
            there = public(".".join([*names[: len(names) - node.level + 1], node.module]))
            for alias in node.names:
                found.update(there if alias.name == "*" else {alias.asname or alias.name: there.get(alias.name)})
    listed = next((ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and
                   ast.unparse(node.targets[0]) == "__all__" and isinstance(node.value, ast.List)), found)
    return {key: node for key, node in found.items() if node and key in listed and not key.startswith("_")}


def signature(node):
    """A def or class as it is declared, without its body."""
    copy = type(node)(**{**dict(ast.iter_fields(node)), "body": [ast.Expr(ast.Constant(...))]})
    return ast.unparse(ast.fix_missing_locations(copy)).removesuffix("...").rstrip()


def python(dotted):
    yield f"## {dotted}\n\n{prose(ast.get_docstring(ast.parse(module(dotted).read_text())))}"
    for key, node in sorted(public(dotted).items()):
        members = [each for each in getattr(node, "body", []) if isinstance(node, ast.ClassDef) and
                   isinstance(each, ast.FunctionDef) and (not each.name.startswith("_") or each.name == "__init__")]
        for title, each in [(key, node), *((f"{key}.{each.name}", each) for each in members)]:
            yield f"### `{title}`\n\n```python\n{signature(each)}\n```\n\n{prose(ast.get_docstring(each) or '')}"


def files():
    """What the page is made of; what they import from is not listed."""
    return [module(each) for each in PACKAGES]


def text():
    return "\n\n".join(part for each in PACKAGES for part in python(each))
