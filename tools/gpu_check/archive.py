"""Packs all results of a run into one file, which is replaced atomically: a kill leaves the old or the new one."""

import io
import os
import tarfile

MOST = 1 << 20  # bytes of a file; the middle of a longer one is left out


def content_of(file):
    size = file.stat().st_size
    with open(file, "rb") as opened:
        if size <= MOST:
            return opened.read()
        first = opened.read(MOST // 4)
        opened.seek(-(MOST - len(first)), os.SEEK_END)
        return first + f"\n... {size - MOST} bytes are left out ...\n".encode() + opened.read()


def wanted(folder):
    """The reports and the output of commands, without build products and training data."""
    yield from sorted(folder.glob("report.*"))
    yield from sorted((folder / "steps").glob("*"))
    yield from (file for file in sorted((folder / "runs").rglob("*")) if file.stat().st_size <= MOST)


def write(folder, file):
    new = file.with_name(file.name + ".new")
    with tarfile.open(new, "w:gz", compresslevel=4) as packed:
        for found in wanted(folder):
            if found.is_symlink() or not found.is_file():
                continue
            content = content_of(found)
            entry = tarfile.TarInfo(f"gpu-check-results/{found.relative_to(folder)}")
            entry.size, entry.mtime = len(content), int(found.stat().st_mtime)
            packed.addfile(entry, io.BytesIO(content))
    new.replace(file)
