// Reads the variables of one platform and collects what is wrong with them, so that one
// error names them all. Used by the platforms; one thread.
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

  // Null: unset or empty.
  const std::string* Find(const std::string& name) const;
  // Required ones. What is missing or malformed becomes a problem, and a stand-in returns.
  std::string Text(const std::string& name);
  int Number(const std::string& name, int least);
  // Optional ones.
  std::optional<int> MaybeNumber(const std::string& name, int least);

  void FailUnset(const std::string& name);
  void Fail(std::string problem) { problems_.push_back(std::move(problem)); }
  // Two variables that must agree and do not.
  void Disagree(const std::string& one, const std::string& other);
  // A number that must be equal to `expected`, when the variable is set.
  void Expect(const std::string& name, int expected, const std::string& because);

  // Number of this host among `count`, from two required variables.
  void Place(const std::string& index, const std::string& count, Allocation* to);
  // MASTER_ADDR and MASTER_PORT by these names; a single host does without. REQUIRES: to->count.
  void Root(const std::string& address, const std::string& port, Allocation* to);
  void RootAddress(const std::string& address, Allocation* to);
  // dtrun starts the ranks itself, so the platform starts it once per host. `fix` says how.
  void OncePerHost(const std::string& local_size, const std::string& fix);

  // An error with DTRUN_NOT_FOUND: nothing but variables that are not set, as away from the platform.
  Result<Allocation> Take(Allocation allocation) const;

 private:
  // A count that could not be read proves nothing.
  bool IsAlone(const Allocation& allocation) const { return problems_.empty() && allocation.count.max == 1; }

  const Environment& environment_;
  std::string platform_;
  std::vector<std::string> problems_;
  std::size_t unset_ = 0;  // how many of them are a variable that is not there
};

}  // namespace dtrun::hosts
