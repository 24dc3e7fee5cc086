// What MPI_Init changes in the process and must not: signal handlers, and environment variables that
// children would inherit.
//
// Scopes on the stack of the thread that they affect.
#pragma once

#include <signal.h>

#include <array>
#include <map>
#include <string>

namespace dtrun::mpi_plugin {

// Puts back every handler that was replaced while it lived.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers();
  ~KeepSignalHandlers();
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  std::array<struct sigaction, NSIG> before_;
};

// Puts back every environment variable that was added, changed or removed while it lived. No
// other thread may change the environment meanwhile.
class KeepEnvironment {
 public:
  KeepEnvironment();
  ~KeepEnvironment();
  KeepEnvironment(const KeepEnvironment&) = delete;
  KeepEnvironment& operator=(const KeepEnvironment&) = delete;

 private:
  std::map<std::string, std::string> before_;
};

}  // namespace dtrun::mpi_plugin
