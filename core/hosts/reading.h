// Reads the variables of one platform and collects all problems, so that one error names every
// wrong variable. Used by the platforms; one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/hosts/allocation.h"

namespace dtrun::hosts {

class Reading {
 public:
  Reading(const Environment& environment, std::string_view platform)
      : environment_(environment), platform_(platform) {}

  // Null if unset or empty.
  const std::string* Find(const std::string& name) const;
  // Required variables. A missing or malformed one is recorded as a problem, and a placeholder is
  // returned.
  std::string Text(const std::string& name);
  int Number(const std::string& name, int least);
  // Optional variables.
  std::optional<int> MaybeNumber(const std::string& name, int least);

  void FailUnset(const std::string& name);
  void Fail(std::string problem) { problems_.push_back(std::move(problem)); }
  // Records that two variables must agree and do not.
  void Disagree(const std::string& one, const std::string& other);
  // Records a problem if the variable is set and does not equal `expected`.
  void Expect(const std::string& name, int expected, const std::string& because);

  // This host's index and the number of hosts, from two required variables.
  void Place(const std::string& index, const std::string& count, Allocation* to);
  // Reads the root address and port from these variables; a single host needs neither. REQUIRES:
  // to->count.
  void Root(const std::string& address, const std::string& port, Allocation* to);
  void RootAddress(const std::string& address, Allocation* to);
  // Checks that the platform starts dtrun once per host, because dtrun starts the ranks itself.
  // `fix` is the remedy.
  void OncePerHost(const std::string& local_size, const std::string& fix);

  // An error is DTRUN_NOT_FOUND if all problems are unset variables, as outside the platform.
  Result<Allocation> Take(Allocation allocation) const;

 private:
  // An unreadable count proves nothing.
  bool IsAlone(const Allocation& allocation) const { return problems_.empty() && allocation.count.max == 1; }

  const Environment& environment_;
  std::string platform_;
  std::vector<std::string> problems_;
  std::size_t unset_ = 0;  // problems that are an unset variable
};

}  // namespace dtrun::hosts
