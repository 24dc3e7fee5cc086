#include "core/node/inheritance.h"

#include <unistd.h>

#include <map>

namespace dtrun::node {

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> block;
  for (char** entry = environ; *entry != nullptr; ++entry) block.emplace_back(*entry);
  return block;
}

std::vector<std::string> EnvironmentOf(const plan::Process& process, pmi::Admission& mpi,
                                       const std::vector<std::string>& base) {
  std::map<std::string, std::string>& set = mpi.variables;
  set.insert(process.env.begin(), process.env.end());
  std::vector<std::string> block;
  block.reserve(base.size() + set.size());
  for (const std::string& entry : base) {
    const std::string name = entry.substr(0, entry.find('='));
    mpi.defaults.erase(name);
    if (!set.contains(name)) block.push_back(entry);
  }
  set.merge(mpi.defaults);
  for (const auto& [name, value] : set) block.push_back(name + "=" + value);
  return block;
}

std::optional<rlim_t> RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

}  // namespace dtrun::node
