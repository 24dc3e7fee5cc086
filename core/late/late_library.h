// A shared library that is loaded at the first call of one of its functions.
//
// Most jobs run on one host and need neither TLS nor libnl. Loading these libraries took a seventh of such a
// job's launch time. The files beside this one define the functions of those libraries that dtrun calls; each
// forwards to the real function. Callers include the library's headers and link dtrun_late instead of the
// library. A call to a function that is not defined there does not link.
//
// Any thread may call. Libraries are never unloaded.
#pragma once

#include <mutex>

namespace dtrun::late {

class Library {
 public:
  // Static strings: the name for the dynamic loader, and the package that contains the library.
  constexpr Library(const char* name, const char* package) : name_(name), package_(package) {}

  // Ends the program with exit code 2 if the library or the function is missing, as the dynamic loader would
  // at startup.
  void* Find(const char* function);

 private:
  const char* const name_;
  const char* const package_;
  std::once_flag once_;
  void* handle_ = nullptr;
};

}  // namespace dtrun::late

// Defines `result name parameters`, which calls the function of that name in `library` with `arguments`, the
// names of the parameters. The library's header declares it, so a wrong signature does not compile.
#define DTRUN_LATE(library, result, name, parameters, arguments)                       \
  result name parameters {                                                             \
    static const auto real = reinterpret_cast<decltype(&name)>((library).Find(#name)); \
    return real arguments;                                                             \
  }
