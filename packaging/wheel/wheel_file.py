"""A wheel: a zip archive of an installation, with a list of its files and their hashes.

https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import base64
import hashlib
import os
import zipfile
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


class WheelFile:
    def __init__(self, folder, project, tag):
        self.stem = f"{project.name}-{project.version}"
        self.path = folder / f"{self.stem}-{tag}.whl"
        self._project, self._tag = project, tag
        self._information = f"{self.stem}.dist-info"
        self._record = []
        self._zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        if not failed:
            self._finish()
        self._zip.close()
        if failed:
            self.path.unlink()

    def add(self, file, name, mode=None):
        """A file under `name`, with its own mode unless another is given."""
        if mode is None:
            mode = 0o755 if os.stat(file).st_mode & 0o111 else 0o644
        self._write(name, Path(file).read_bytes(), mode)

    def _write(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}\n")

    def _finish(self):
        place = self._information
        for file in self._project.licenses:
            self._write(f"{place}/licenses/{file}", (self._project.source / file).read_bytes())
        self._write(f"{place}/METADATA", self._project.text.encode())
        about = f"Wheel-Version: 1.0\nGenerator: dtrun_build\nRoot-Is-Purelib: false\nTag: {self._tag}\n"
        self._write(f"{place}/WHEEL", about.encode())
        if groups := self._project.entry_points:
            text = "\n".join(f"[{group}]\n" + "".join(f"{name} = {what}\n" for name, what in sorted(points.items()))
                             for group, points in sorted(groups.items()))
            self._write(f"{place}/entry_points.txt", text.encode())
        record = f"{place}/RECORD"
        self._record.append(f"{record},,\n")
        self._zip.writestr(zipfile.ZipInfo(record, EPOCH), "".join(self._record))
