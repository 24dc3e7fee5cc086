// Signal handlers, which MPI_Init replaces and must not: they belong to the program.
//
// A scope on the stack of the thread that starts MPI.
#pragma once

#include <signal.h>

#include <array>

namespace dtrun::mpi_plugin {

// Puts back every handler that was replaced while it lived.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers() {
    for (int number = 1; number < NSIG; ++number)
      sigaction(number, nullptr, &before_[static_cast<std::size_t>(number)]);
  }
  ~KeepSignalHandlers() {
    for (int number = 1; number < NSIG; ++number) {
      const struct sigaction& before = before_[static_cast<std::size_t>(number)];
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) != 0) continue;  // a number that the C library keeps
      if (now.sa_handler != before.sa_handler) sigaction(number, &before, nullptr);
    }
  }
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  std::array<struct sigaction, NSIG> before_;
};

}  // namespace dtrun::mpi_plugin
