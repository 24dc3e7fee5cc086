"""The SDK and libdtrun as packages: versions, pkg-config, license, and folders that may be moved or have other names.

    package_test.py BUILD SOURCE CMAKE GENERATOR CC CXX

What was installed is moved before it is used.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = map(pathlib.Path, sys.argv[1:3])
CMAKE, GENERATOR, CC, CXX = sys.argv[3:7]
ABI = re.search(r'^set\(dtrun-sdk_ABI "(.*)"\)$', (BUILD / "sdk/dtrun-sdkConfig.cmake").read_text(), re.MULTILINE)[1]
VERSION = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
PKG_CONFIG = shutil.which("pkg-config")

FIND = """cmake_minimum_required(VERSION 3.16)
project(finds LANGUAGES NONE)
foreach(request IN LISTS REQUESTS)
  string(REPLACE "/" ";" words "${request}")
  list(GET words 0 package)
  find_package(${words} QUIET)
  message(STATUS "found ${request}: ${${package}_FOUND}")
  unset(${package}_DIR CACHE)
  unset(${package}_FOUND)
endforeach()
"""
PROGRAM = '#include <dtrun/dtrun.h>\n#include <stdio.h>\nint main(void) { return puts(dtrun_version()) < 0; }\n'


def call(*command, **more):
    ended = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if ended.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} exited with {ended.returncode}:\n{ended.stdout}")
    return ended.stdout


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def install(self, build=BUILD, components=("sdk", "runtime")):
        for component in components:
            call(CMAKE, "--install", build, "--prefix", self.folder / "first", "--component", component)
        return (self.folder / "first").rename(self.folder / "moved")

    def find(self, prefix, *requests):
        """Whether find_package finds each "package/version"."""
        (self.folder / "CMakeLists.txt").write_text(FIND)
        told = call(CMAKE, "-G", GENERATOR, "-S", self.folder, "-B", self.folder / "finds", f"-DCMAKE_PREFIX_PATH={prefix}",
                    "-DCMAKE_LIBRARY_ARCHITECTURE=some-machine",
                    "-DREQUESTS=" + ";".join(requests))
        return [text in ("1", "TRUE") for text in re.findall(r"^-- found \S+: (\w*)$", told, re.MULTILINE)]

    def pkg_config(self, libdir, *words):
        if PKG_CONFIG is None:
            self.skipTest("because pkg-config is not installed")
        return call(PKG_CONFIG, *words, env={"PKG_CONFIG_LIBDIR": str(libdir / "pkgconfig")}).strip()

    def path(self, libdir, *words):
        return pathlib.Path(self.pkg_config(libdir, *words)).resolve()

    def test_versions(self):
        major, minor = ABI.split(".")
        ours = [f"dtrun-sdk/{ABI}", "dtrun-sdk", f"dtrun/{VERSION}", f"dtrun/{VERSION.rsplit('.', 1)[0]}", "dtrun"]
        others = [f"dtrun-sdk/{major}.{int(minor) + 1}", f"dtrun-sdk/{int(major) + 1}.0", f"dtrun/{VERSION}9", "dtrun/99.0"]
        if major == "0":
            others.append(f"dtrun-sdk/{major}.{int(minor) - 1}")
        self.assertEqual(self.find(self.install(), *ours, *others), [True] * len(ours) + [False] * len(others))

    def test_a_program_and_a_plugin_by_pkg_config(self):
        prefix = self.install()
        self.assertEqual(self.pkg_config(prefix / "lib", "--modversion", "dtrun-sdk"), ABI)
        self.assertEqual(self.pkg_config(prefix / "lib", "--modversion", "dtrun"), VERSION)
        self.assertEqual(self.path(prefix / "lib", "--variable=plugindir", "dtrun-sdk"), (prefix / "lib/dtrun/plugins").resolve())
        (self.folder / "program.c").write_text(PROGRAM)
        flags = self.pkg_config(prefix / "lib", "--cflags", "--libs", "dtrun").split()
        call(CC, self.folder / "program.c", *flags, "-o", self.folder / "program")
        self.assertEqual(call(self.folder / "program", env={"LD_LIBRARY_PATH": str(prefix / "lib")}).strip(), VERSION)
        plugin_map = self.path(prefix / "lib", "--variable=plugin_map", "dtrun-sdk")
        self.assertEqual(plugin_map, (prefix / "lib/cmake/dtrun-sdk/plugin.map").resolve())
        flags = self.pkg_config(prefix / "lib", "--cflags", "--libs", "dtrun-sdk").split()
        # With functions that are not static, as of a library that is linked into it.
        (self.folder / "backend.c").write_text(f'#include "{SOURCE}/sdk/tests/golden/backend.c"\nint helper(void) {{ return 0; }}\n')
        call(CC, "-std=c11", "-shared", "-fPIC", self.folder / "backend.c", *flags, "-o", self.folder / "backend.so")
        exported = call("nm", "-D", "--defined-only", self.folder / "backend.so").split()[2::3]
        self.assertRegex(" ".join(exported), r"^dtrun_plugin_entry_v\d$")
        self.assertIn("NODELETE", call("readelf", "-d", self.folder / "backend.so"))

    def test_nothing_says_where_it_was_made(self):
        prefix = self.install()
        texts = [file for folder in ("cmake", "pkgconfig") for file in (prefix / "lib" / folder).rglob("*") if file.is_file()]
        self.assertGreater(len(texts), 8)
        for file in texts:
            for place in (BUILD, SOURCE, self.folder):
                self.assertNotIn(str(place), file.read_text(), file.name)

    def test_license_and_frozen_headers_come_with_it(self):
        prefix = self.install(components=["sdk"])
        for name in ("dtrun_abi.rs", "dtrun.rs"):
            self.assertTrue((prefix / "include/dtrun" / name).is_file(), name)
        for name in ("LICENSE", "frozen_headers.txt"):
            self.assertTrue((prefix / "share/doc/dtrun-sdk" / name).exists(), name)
        for line in (prefix / "share/doc/dtrun-sdk/frozen_headers.txt").read_text().splitlines():
            self.assertTrue(line.startswith("#") or (prefix / "include" / line.split()[0]).exists(), line)
        self.assertEqual([file for file in (prefix / "include").rglob(".*")], [])

    def test_there_is_none_without_the_conformance_tool(self):
        """GoogleTest is hidden: a build stops at once, and one that asked for it packs and installs no SDK."""
        self.assertTrue((self.install(components=["sdk"]) / "bin/dtrun-conformance").exists())
        build = self.folder / "build"
        configure = [CMAKE, "-G", GENERATOR, "-S", SOURCE, "-B", build, "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DDTRUN_TESTS=OFF",
                     f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=Release"]
        for command, text in ((configure, "Install libgtest-dev"),
                              ([*configure, "-DDTRUN_CONFORMANCE=OFF"], None),
                              ([CMAKE, "--install", build, "--component", "sdk", "--prefix", self.folder], "cmake -DDTRUN_CONFORMANCE=ON")):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            said = " ".join((done.stdout + done.stderr).split())
            self.assertEqual(done.returncode, 1 if text else 0, said)
            self.assertIn(text or "there is no SDK", said)

    def test_a_libdir_of_several_architectures(self):
        """Configured for it, and installed with what this build made."""
        build = self.folder / "build"
        call(CMAKE, "-G", GENERATOR, "-S", SOURCE, "-B", build, "-DCMAKE_INSTALL_LIBDIR=lib/some-machine", "-DDTRUN_TESTS=OFF",
             "-DCMAKE_SKIP_RPATH=ON",  # what this build made has run paths of its own
             f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=Release")
        for built in ("bin", "lib", "share"):
            shutil.rmtree(build / built, ignore_errors=True)
            (build / built).symlink_to(BUILD / built)
        prefix = self.install(build, ["sdk"])
        libdir = prefix / "lib/some-machine"
        self.assertEqual([file for file in prefix.glob("lib/*") if file != libdir], [])
        self.assertTrue((libdir / "libdtrun.so").is_symlink())
        self.assertEqual(self.path(libdir, "--variable=libdir", "dtrun"), libdir.resolve())
        for name in ("dtrun", "dtrun-sdk"):
            self.assertEqual(self.path(libdir, "--variable=includedir", name), (prefix / "include").resolve())
        self.assertEqual(self.path(libdir, "--variable=plugindir", "dtrun-sdk"), (prefix / "lib/dtrun/plugins").resolve())
        self.assertTrue(self.path(libdir, "--variable=plugin_map", "dtrun-sdk").is_file())
        (libdir / "libdtrun.so.1").touch()  # which come with the other component
        (libdir / f"libdtrun.so.{VERSION}").touch()
        self.assertEqual(self.find(prefix, f"dtrun-sdk/{ABI}", "dtrun"), [True, True])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
