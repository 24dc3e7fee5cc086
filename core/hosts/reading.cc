#include "core/hosts/reading.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/endpoint.h"
#include "core/base/number.h"

namespace dtrun::hosts {

const std::string* Reading::Find(const std::string& name) const {
  const auto found = environment_.find(name);
  return found == environment_.end() || found->second.empty() ? nullptr : &found->second;
}

void Reading::FailUnset(const std::string& name) {
  ++unset_;
  Fail(name + " is unset");
}

std::string Reading::Text(const std::string& name) {
  if (const std::string* text = Find(name)) return *text;
  FailUnset(name);
  return {};
}

int Reading::Number(const std::string& name, int least) {
  if (Find(name) == nullptr) {
    FailUnset(name);
    return least;
  }
  return MaybeNumber(name, least).value_or(least);
}

std::optional<int> Reading::MaybeNumber(const std::string& name, int least) {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const std::optional<int> number = NumberOf<int>(*text);
  if (number && *number >= least) return number;
  Fail(fmt::format("{}='{}' is not a number of at least {}", name, *text, least));
  return std::nullopt;
}

void Reading::Disagree(const std::string& one, const std::string& other) {
  const std::string *a = Find(one), *b = Find(other);
  Fail(fmt::format("{} says {}, {} says {}", one, a == nullptr ? "nothing" : *a, other,
                   b == nullptr ? "nothing" : *b));
}

void Reading::Expect(const std::string& name, int expected, const std::string& because) {
  const auto number = MaybeNumber(name, std::numeric_limits<int>::min());
  if (number && *number != expected) Fail(fmt::format("{} says {}, but {}", name, *number, because));
}

void Reading::Place(const std::string& index, const std::string& count, Allocation* to) {
  const std::size_t before = problems_.size();
  const int own = Number(index, 0);
  const int all = Number(count, 1);
  if (problems_.size() == before && own >= all) {
    Fail(fmt::format("{} says {}, {} says {}: the last of {} is {}", index, own, count, all, all, all - 1));
  }
  to->everywhere = true;
  to->own_index = own;
  to->count = {all, all};
}

void Reading::Root(const std::string& address, const std::string& port, Allocation* to) {
  RootAddress(address, to);
  const std::optional<int> number = IsAlone(*to) ? MaybeNumber(port, 1) : Number(port, 1);
  if (number > 65535) Fail(fmt::format("{} says {}; the highest port is 65535", port, *number));
  to->rank_port = number;
}

void Reading::RootAddress(const std::string& address, Allocation* to) {
  to->root_address = IsAlone(*to) && Find(address) == nullptr ? "localhost" : Text(address);
  if (const Result<HostParts> parts = SplitHost(to->root_address); parts && !parts->after)
    to->root_address = parts->host;
}

void Reading::OncePerHost(const std::string& local_size, const std::string& fix) {
  const auto processes = MaybeNumber(local_size, 1);
  if (processes.value_or(1) == 1) return;
  Fail(fmt::format(
      "{} says {} processes on this host, and dtrun starts the ranks itself; start it once per host: {}",
      local_size, *processes, fix));
}

Result<Allocation> Reading::Take(Allocation allocation) const {
  if (problems_.empty()) return allocation;
  return Error{
      problems_.size() == unset_ ? DTRUN_NOT_FOUND : DTRUN_INVALID_ARGUMENT,
      fmt::format("\"{}\": {}; start dtrun where that platform has set its variables, or choose another "
                  "platform",
                  platform_, fmt::join(problems_, "; "))};
}

}  // namespace dtrun::hosts
