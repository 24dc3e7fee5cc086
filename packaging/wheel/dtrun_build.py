"""Makes dtrun's wheel and source archive, for `pip` and every other tool that speaks PEP 517.

The setting `build-dir` names a folder where dtrun has been built, which is packed as it is; without it dtrun is built in
build/wheel first. Nothing but the standard library (and tomli before Python 3.11) is needed for that; what CMake does not find
is left out, as in every build.
"""

import glob
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import metadata
from wheel_file import WheelFile

SOURCE = Path(__file__).resolve().parents[2]
TAG = "py3-none-linux_x86_64"  # auditwheel makes it a manylinux one
COMPONENTS = ("runtime", "mpi", "ucx", "nccl")
# What of an installation goes into dtrun/native. Symbolic links become files: a wheel has none.
NATIVE = (
    "bin/dtrun", "bin/dtrun-bench", "lib/libdtrun.so.1", "lib/dtrun/dtrun-*", "lib/dtrun/plugins/*",
    "lib/dtrun/bench/torch_gloo.py", "share/dtrun/failures.toml", "share/dtrun/configs/*",
)  # fmt: skip
SCRIPTS = ("dtrun", "dtrun-torchrun")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = metadata.read(SOURCE)
    with tempfile.TemporaryDirectory(prefix="dtrun-wheel-") as folder:
        installed = Path(folder)
        install(build_folder(config_settings or {}), installed)
        with WheelFile(Path(wheel_directory), project, TAG) as wheel:
            for file in python_files():
                wheel.add(SOURCE / "python" / file, file)
            for pattern in NATIVE:
                found = sorted(glob.glob(str(installed / pattern)))
                if not found:
                    sys.exit(f"dtrun_build: {pattern} is missing in what was installed; name a build folder of this source tree")
                for file in found:
                    wheel.add(file, f"dtrun/native/{os.path.relpath(file, installed)}")
            for name in SCRIPTS:
                wheel.add(SOURCE / "packaging/wheel/launcher", f"{wheel.stem}.data/scripts/{name}", mode=0o755)
    return wheel.path.name


def build_sdist(sdist_directory, config_settings=None):
    project = metadata.read(SOURCE)
    stem = f"dtrun-{project.version}"
    with tempfile.TemporaryDirectory(prefix="dtrun-sdist-") as folder:
        information = Path(folder) / "PKG-INFO"
        information.write_text(project.text)
        with tarfile.open(Path(sdist_directory) / f"{stem}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
            archive.add(information, f"{stem}/PKG-INFO")
            for file in source_files():
                archive.add(SOURCE / file, f"{stem}/{file}", recursive=False)
    return f"{stem}.tar.gz"


def build_folder(settings):
    if folder := settings.get("build-dir"):
        return folder
    folder = SOURCE / "build/wheel"
    definitions = ("CMAKE_BUILD_TYPE=Release", "DTRUN_TESTS=OFF", "DTRUN_CONFORMANCE=OFF", "DTRUN_TORCH=OFF")
    run("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", *(f"-D{definition}" for definition in definitions))
    run("cmake", "--build", folder)
    return folder


def install(build, prefix):
    for component in COMPONENTS:
        run("cmake", "--install", build, "--component", component, "--prefix", prefix, "--strip")


def run(*command):
    """Its output goes to stderr: a backend's stdout is the frontend's."""
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except FileNotFoundError:
        sys.exit(f"dtrun_build: {command[0]} is missing; `tools/setup run` installs what building dtrun needs")
    except subprocess.CalledProcessError as failure:
        sys.exit(f"dtrun_build: `{' '.join(map(str, command))}` ended with exit code {failure.returncode}; its output is above")


def python_files():
    root = SOURCE / "python"
    return sorted(str(file.relative_to(root)) for file in (root / "dtrun").rglob("*") if file.is_file() and not is_cache(file))


def is_cache(file):
    return "__pycache__" in file.parts


def source_files():
    """What git has or would add; in an unpacked source archive, where all is source, everything but what was built."""
    if (SOURCE / ".git").exists():
        command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=SOURCE, check=True, stdout=subprocess.PIPE, text=True).stdout
        return sorted(file for file in listed.split("\0") if file and os.path.lexists(SOURCE / file))
    files = (file.relative_to(SOURCE) for file in SOURCE.rglob("*") if not file.is_dir())
    return sorted(str(file) for file in files if file.parts[0] not in ("build", "PKG-INFO") and not is_cache(file))
