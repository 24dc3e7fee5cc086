#include "core/pmi/exchange.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrun::pmi {

void Exchange::Offer(int host, Part part) {
  if (failure_) return answer_(host, part.exchange, *failure_);
  const auto [at, fresh] = open_.try_emplace(part.exchange, Open{part.hosts, {}});
  Open& open = at->second;
  if (open_.size() > kMostOpen || part.bytes.size() > kMostBytes - bytes_) {
    const Error error{DTRUN_INVALID_ARGUMENT,
                      fmt::format("{} exchanges with {} bytes wait, exchange '{}' is one too many; a job may "
                                  "have {} with {} bytes",
                                  open_.size() - 1, bytes_, part.exchange, kMostOpen, kMostBytes)};
    answer_(host, part.exchange, error);
    return Finish(at, error);
  }
  if (!fresh && open.hosts != part.hosts) {
    // The ranks disagree on the participants, which is an error of the program.
    const Error error{DTRUN_MISMATCH,
                      fmt::format("exchange '{}' has other members on host {}", part.exchange, host)};
    answer_(host, part.exchange, error);
    return Finish(at, error);
  }
  bytes_ += part.bytes.size();
  open.parts[host] = std::move(part.bytes);
  const bool complete =
      std::ranges::all_of(open.hosts, [&](int member) { return open.parts.contains(member); });
  if (!complete) return;
  std::string all;
  for (const auto& [member, bytes] : open.parts) all += bytes;
  Finish(at, std::move(all));
}

void Exchange::Fail(const Error& why) {
  failure_ = why;
  while (!open_.empty()) Finish(open_.begin(), why);
}

void Exchange::Reset() {
  open_.clear();
  bytes_ = 0;
  failure_.reset();
}

// Erases the exchange before answering: a host may offer the next part at once.
void Exchange::Finish(std::map<std::string, Open>::iterator at, const Result<std::string>& all) {
  const auto done = open_.extract(at);
  for (const auto& [host, bytes] : done.mapped().parts) bytes_ -= bytes.size();
  for (const auto& [host, bytes] : done.mapped().parts) answer_(host, done.key(), all);
}

}  // namespace dtrun::pmi
