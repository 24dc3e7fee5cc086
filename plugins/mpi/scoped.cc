#include "scoped.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

namespace dtrun::mpi_plugin {
namespace {

std::map<std::string, std::string> Variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

KeepSignalHandlers::KeepSignalHandlers() {
  for (int number = 1; number < NSIG; ++number)
    sigaction(number, nullptr, &before_[static_cast<std::size_t>(number)]);
}

KeepSignalHandlers::~KeepSignalHandlers() {
  for (int number = 1; number < NSIG; ++number) {
    const struct sigaction& before = before_[static_cast<std::size_t>(number)];
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) != 0) continue;  // a number that the C library keeps
    if (now.sa_handler != before.sa_handler) sigaction(number, &before, nullptr);
  }
}

KeepEnvironment::KeepEnvironment() : before_(Variables()) {}

KeepEnvironment::~KeepEnvironment() {
  for (const auto& [name, value] : Variables()) {
    const auto old = before_.find(name);
    if (old == before_.end()) {
      unsetenv(name.c_str());
    } else if (old->second != value) {
      setenv(name.c_str(), old->second.c_str(), 1);
    }
  }
  for (const auto& [name, value] : before_) {
    if (getenv(name.c_str()) == nullptr) setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace dtrun::mpi_plugin
