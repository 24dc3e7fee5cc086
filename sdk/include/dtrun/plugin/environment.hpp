// dtrun/plugin/environment.hpp - environment variables: one that may be unset, and a scope that undoes
// changes.
//
// Not part of plugin.hpp. Vendor libraries read their settings from the environment while they are loaded or
// started, and some set variables, which children would inherit. While one thread changes the environment no
// other may read it.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  inline std::optional<std::string> EnvironmentVariable(const char* name) {
    const char* const value = getenv(name);
    return value == nullptr ? std::nullopt : std::make_optional<std::string>(value);
  }

  // Restores every environment variable that was added, changed or removed during its lifetime. A scope on
  // the stack.
  class KeepEnvironment {
   public:
    KeepEnvironment() : before_(Variables()) {}
    ~KeepEnvironment() {
      for (const auto& [name, value] : Variables()) {
        if (before_.count(name) == 0) unsetenv(name.c_str());
      }
      for (const auto& [name, value] : before_) {
        if (EnvironmentVariable(name.c_str()) != value) setenv(name.c_str(), value.c_str(), 1);
      }
    }
    KeepEnvironment(const KeepEnvironment&) = delete;
    KeepEnvironment& operator=(const KeepEnvironment&) = delete;

   private:
    static std::map<std::string, std::string> Variables() {
      std::map<std::string, std::string> variables;
      for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
      }
      return variables;
    }
    const std::map<std::string, std::string> before_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
