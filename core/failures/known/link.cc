#include "core/failures/known/tables.h"

namespace dtrun::failures {
namespace {

constexpr KnownFailure kLinkTable[] = {
    {"glibc-old",
     {"version `GLIBC_{version}' not found (required by {file})"},
     "{file} was built for glibc {version}; this host has an older one",
     "build it on the oldest system that runs it, or run the job in one container image on all hosts",
     "the dynamic linker"},
    {"libstdcxx-old",
     {"version `GLIBCXX_{version}' not found (required by {file})",
      "version `CXXABI_{version}' not found (required by {file})"},
     "{file} needs a newer libstdc++ ({version}) than the one that was found first",
     "remove the old one from LD_LIBRARY_PATH; with conda, install libstdcxx-ng in the environment",
     "the dynamic linker"},
    {"library-missing",
     {"error while loading shared libraries: {library}: cannot open shared object file",
      "ImportError: {library}: cannot open shared object file",
      "OSError: {library}: cannot open shared object file"},
     "the library {library} is not on this host, or not where the linker looks",
     "install it on every host, or add its folder to LD_LIBRARY_PATH in job.env",
     "the dynamic linker"},
    {"symbol-missing",
     {"undefined symbol: {symbol}"},
     "two libraries of different versions met: {symbol} is missing",
     "look with `ldd` which file is found first; unset LD_LIBRARY_PATH and LD_PRELOAD, reinstall the "
     "extension for "
     "this version",
     "the dynamic linker"},
    {"module-missing",
     {"ModuleNotFoundError: No module named '{module}'"},
     "Python has no module {module} on this host",
     "install it on every host, or name the right interpreter with its full path in job.command",
     "Python"},
    {"wrong-architecture",
     {"Exec format error", "cannot execute binary file"},
     "the program is for another processor, or a script without a first line that names its interpreter",
     "build it for this machine, or begin it with #!/bin/sh",
     "Linux execve(2)"},
    {"openmp-twice",
     {"OMP: Error #15: Initializing {library}, but found {other} already initialized"},
     "two OpenMP libraries met in one process: {library} and {other}",
     "install numpy and torch from one source, so that they share one",
     "Intel's OpenMP"},
};

}  // namespace

std::span<const KnownFailure> LinkFailures() { return kLinkTable; }

}  // namespace dtrun::failures
