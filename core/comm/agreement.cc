#include "core/comm/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/base/error_id.h"
#include "core/comm/told_error.h"
#include "core/plugin/host.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

constexpr std::string_view kAll = "all";
// How soon a rank that waits for the others notices that the communicator has failed.
constexpr Nanoseconds kLook = std::chrono::milliseconds(100);

std::string Key(std::string_view what, int attempt) { return fmt::format("{}/{}", what, attempt); }

// The first rank that knows the verdict publishes it.
Status Tell(dtrun_kv& kv, int attempt, const std::string& verdict) {
  const Result<bool> told = kv.CompareSet(Key("verdict", attempt), false, {}, verdict);
  return told ? Status() : told.error();
}

// The ranks that have not published yet.
std::vector<int> Missing(const Making& making, int attempt) {
  std::vector<int> missing;
  for (int rank = 0; rank < making.size; ++rank) {
    if (!making.device_kv->TryGet(fmt::format("{}/{}", Key("here", attempt), rank))) missing.push_back(rank);
  }
  return missing;
}

Error NobodyCame(const Making& making, int attempt, const std::string& device) {
  const std::vector<int> missing = Missing(making, attempt);
  return Error{
      DTRUN_TIMEOUT,
      fmt::format("{} of '{}' made no call on memory of {} within {}; the first call connects all ranks",
                  missing.empty() ? "a rank" : sdk::RanksText(missing), making.name, device,
                  FormatDuration(making.timeout)),
      missing.size() == 1 ? missing.front() : -1,
      ErrorId::kAbsent,
      missing,
      {{"call", "connect"}, {"communicator", making.name}}};
}

// The verdict as far as this rank knows: empty, the error of one rank, or that all can.
Result<std::string> Compare(const Making& making, int attempt, const std::string& mine) {
  dtrun_kv& kv = *making.device_kv;
  const std::string said = fmt::format("{} {}", making.rank, mine);
  const Result<bool> first = kv.CompareSet(Key("route", attempt), false, {}, said);
  if (!first) return first.error();
  Result<std::string> theirs = kv.Get(Key("route", attempt), making.timeout);
  if (!theirs) return theirs;
  const std::size_t space = theirs->find(' ');
  if (theirs->substr(space + 1) != mine) {
    return EncodeError(
        {DTRUN_MISMATCH,
         fmt::format("'{}': rank {} moves {}, and rank {} moves {}; all ranks use one kind of "
                     "device and the same backend",
                     making.name, theirs->substr(0, space), theirs->substr(space + 1), making.rank, mine)});
  }
  const Result<std::int64_t> ready = kv.Add(Key("ready", attempt), 1);
  if (!ready) return ready.error();
  return *ready == making.size ? std::string(kAll) : std::string();
}

// Waits for the verdict that some rank publishes for all.
Result<std::string> AwaitVerdict(const Making& making, int attempt, const std::string& device,
                                 const std::function<Status()>& usable) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const Nanoseconds left = making.timeout - (std::chrono::steady_clock::now() - start);
    const bool last = making.timeout.count() >= 0 && left <= kLook;
    Result<std::string> verdict =
        making.device_kv->Get(Key("verdict", attempt), last ? std::max(left, Nanoseconds(0)) : kLook);
    if (verdict || verdict.error().code != DTRUN_TIMEOUT) return verdict;
    if (Status still = usable(); !still) return std::move(still).error();
    if (last) return NobodyCame(making, attempt, device);
  }
}

}  // namespace

Status Agree(const Making& making, int attempt, const std::string& device, const Result<std::string>& mine,
             const std::function<Status()>& usable) {
  dtrun_kv* const kv = making.device_kv;
  if (kv == nullptr || making.size == 1) return mine ? Status() : mine.error();
  if (Status here = kv->Set(fmt::format("{}/{}", Key("here", attempt), making.rank), ""); !here) return here;
  if (!mine) {
    const Error refusal{DTRUN_REMOTE_FAILURE,
                        fmt::format("rank {} cannot connect '{}' to {}: {}", making.rank, making.name, device,
                                    mine.error().text),
                        making.rank};
    if (Status told = Tell(*kv, attempt, EncodeError(refusal)); !told) return told;
    return mine.error();
  }
  const Result<std::string> known = Compare(making, attempt, *mine);
  if (!known) return known.error();
  if (!known->empty()) {
    if (Status told = Tell(*kv, attempt, *known); !told) return told;
  }
  const Result<std::string> verdict = AwaitVerdict(making, attempt, device, usable);
  if (!verdict) return verdict.error();
  return *verdict == kAll ? Status() : DecodeError(*verdict);
}

}  // namespace dtrun::comm
