"""The [project] table of pyproject.toml as the text that a wheel's METADATA and a source archive's PKG-INFO hold."""

import re
from collections import namedtuple

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

# `text`: METADATA; `entry_points`: {group: {name: object}}; `licenses`: paths in the source tree.
Project = namedtuple("Project", "name version text entry_points licenses source")


def read(source):
    table = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    version_file = source / "python/dtrun/_version.py"
    version = re.fullmatch(r'__version__ = "([^"]+)"\n', version_file.read_text())
    if version is None:
        raise SystemExit(f"dtrun_build: {version_file} is not one line __version__ = \"…\"; write the version so")
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", table["name"]),
        ("Version", version[1]),
        ("Summary", table["description"]),
        ("Requires-Python", table["requires-python"]),
        ("Author", ", ".join(author["name"] for author in table["authors"])),
        ("License-Expression", table["license"]),
        *(("License-File", file) for file in table["license-files"]),
        *(("Classifier", classifier) for classifier in table["classifiers"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    text = f"{head}\n{(source / table['readme']).read_text()}"
    entry_points = table.get("entry-points", {})
    for place in (place for points in entry_points.values() for place in points.values()):
        module = source / "python" / place.split(":")[0].replace(".", "/")
        if not (module / "__init__.py").exists() and not module.with_suffix(".py").exists():
            raise SystemExit(f"dtrun_build: pyproject.toml: the entry point '{place}' has no module in python/; correct it")
    return Project(table["name"], version[1], text, entry_points, table["license-files"], source)
