// A shared library that is loaded when one of its functions is first called, and not with the program.
//
// Most jobs run on one host and need neither TLS nor the kernel's tables of networks, and the libraries for
// them were a seventh of what such a job took to launch. The files beside this one define the functions of
// those libraries that dtrun calls, each of which finds the library's own and passes the call on: callers
// include the library's headers and link dtrun_late instead of it. A call to a function without its line
// there does not link.
//
// Any thread may call. Nothing is ever unloaded.
#pragma once

#include <mutex>

namespace dtrun::late {

class Library {
 public:
  // Both live as long as the program: the name that the dynamic loader searches, and the package that has it.
  constexpr Library(const char* name, const char* package) : name_(name), package_(package) {}

  // Ends the program with exit code 2 where the library, or this function of it, is missing, as the
  // dynamic loader would have ended it at its start.
  void* Find(const char* function);

 private:
  const char* const name_;
  const char* const package_;
  std::once_flag once_;
  void* handle_ = nullptr;
};

}  // namespace dtrun::late

// Defines `result name parameters`, which calls the function of that name in `library` with `arguments`, the
// names of the parameters. The library's own header has declared it, so a wrong signature does not compile.
#define DTRUN_LATE(library, result, name, parameters, arguments)                       \
  result name parameters {                                                             \
    static const auto real = reinterpret_cast<decltype(&name)>((library).Find(#name)); \
    return real arguments;                                                             \
  }
