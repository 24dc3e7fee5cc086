#include "core/comm/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error_id.h"
#include "core/base/number.h"
#include "core/wire/coder.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

constexpr std::string_view kAll = "all";
// How soon a rank that waits for the others notices that the communicator has failed.
constexpr Nanoseconds kLook = std::chrono::milliseconds(100);

// What one rank wrote into a key-value space for the others with wire::Encode.
Error DecodeError(std::string_view told) {
  wire::Reader reader(told);
  Error error;
  reader("error", error);
  if (Status whole = reader.Finish("answer of a rank"); !whole) return std::move(whole).error();
  return error;
}

// The ranks without a value at KEY/RANK.
std::vector<int> Missing(const Making& making, dtrun_kv& kv, const std::string& key) {
  std::vector<int> missing;
  for (int rank = 0; rank < making.size; ++rank) {
    if (!kv.TryGet(fmt::format("{}/{}", key, rank))) missing.push_back(rank);
  }
  return missing;
}

std::string Key(std::string_view what, int attempt) { return fmt::format("{}/{}", what, attempt); }

// The first rank that knows the verdict publishes it.
Status Tell(dtrun_kv& kv, int attempt, const std::string& verdict) {
  const Result<bool> told = kv.CompareSet(Key("verdict", attempt), false, {}, verdict);
  return told ? Status() : told.error();
}

Error NoCall(const Making& making, int attempt, const std::string& device) {
  const std::vector<int> missing = Missing(making, *making.device_kv, Key("here", attempt));
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

// What a rank has published.
struct Said {
  int rank;
  std::string what;
};

// What the first rank has published under `key`; none when it is `mine`, or this is the first one.
Result<std::optional<Said>> OtherThan(dtrun_kv& kv, const std::string& key, int rank,
                                      const std::string& mine) {
  const Result<bool> is_first = kv.CompareSet(key, false, {}, fmt::format("{} {}", rank, mine));
  if (!is_first) return is_first.error();
  if (*is_first) return std::optional<Said>();
  const Result<std::string> first = kv.TryGet(key);
  if (!first) return first.error();
  const std::size_t space = first->find(' ');
  if (first->substr(space + 1) == mine) return std::optional<Said>();
  return std::optional(Said{NumberOf<int>(first->substr(0, space)).value_or(-1), first->substr(space + 1)});
}

// The verdict as far as this rank knows: empty, the error of one rank, or that all can.
Result<std::string> Compare(const Making& making, int attempt, const std::string& mine) {
  dtrun_kv& kv = *making.device_kv;
  const Result<std::optional<Said>> other = OtherThan(kv, Key("route", attempt), making.rank, mine);
  if (!other) return other.error();
  if (*other) {
    return wire::Encode(Error{
        DTRUN_MISMATCH,
        fmt::format("'{}': rank {} moves {}, and rank {} moves {}; all ranks use one kind of device and the "
                    "same backend",
                    making.name, (*other)->rank, (*other)->what, making.rank, mine)});
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
    if (last) return NoCall(making, attempt, device);
  }
}

std::string MakingKey(std::string_view route, std::string_view what) {
  return fmt::format("{}/{}", route, what);
}

// The error of the first rank that failed.
std::optional<Error> Refusal(const Making& making, std::string_view route) {
  const Result<std::string> told = making.making_kv->TryGet(MakingKey(route, "refusal"));
  return told ? std::optional(DecodeError(*told)) : std::nullopt;
}

// Whether this rank itself lacks something, such as a library: then its own error counts, whichever rank
// failed first.
bool IsOwn(const Error& mine, const Error& first) {
  const bool lacks = mine.code == DTRUN_INVALID_ARGUMENT || mine.code == DTRUN_FAILED_PRECONDITION ||
                     mine.code == DTRUN_UNSUPPORTED;
  return lacks && mine.text.find(first.text) == std::string::npos;
}

Status TellOthers(const Making& making, std::string_view route, dtrun_kv* theirs, Error mine) {
  // The failure published to the others may have ended it here.
  if (std::optional<Error> first = Refusal(making, route)) return IsOwn(mine, *first) ? mine : *first;
  if (mine.code == DTRUN_TIMEOUT || mine.code == DTRUN_ABORTED) return mine;
  const bool noticed = mine.code == DTRUN_REMOTE_FAILURE && mine.peer >= 0;
  const std::string who = fmt::format("rank {}", making.rank);
  const std::string text = mine.text.starts_with(who + " ") ? mine.text : who + ": " + mine.text;
  const Error told{DTRUN_REMOTE_FAILURE, text, noticed ? mine.peer : making.rank, ErrorId::kPeerFailed};
  const Result<bool> first =
      making.making_kv->CompareSet(MakingKey(route, "refusal"), false, {}, wire::Encode(told));
  // If the store is gone, no rank can be told.
  static_cast<void>(making.making_kv->Fail(told.text));
  if (theirs != nullptr) static_cast<void>(theirs->Fail(told.text));
  if (first && !*first) {
    if (std::optional<Error> before = Refusal(making, route)) return IsOwn(mine, *before) ? mine : *before;
  }
  return mine;
}

Error NotMade(const Making& making, std::string_view route) {
  const std::vector<int> missing = Missing(making, *making.making_kv, MakingKey(route, "made"));
  return Error{
      DTRUN_TIMEOUT,
      fmt::format("{} of {} did not join '{}' within {}; look at the output of {}, or raise backend.timeout",
                  missing.empty() ? "a rank" : sdk::RanksText(missing), making.size, making.name,
                  FormatDuration(making.timeout), missing.size() == 1 ? "that rank" : "those ranks"),
      missing.empty() ? -1 : missing.front(),
      ErrorId::kAbsent,
      missing,
      {{"call", "join"}, {"communicator", making.name}}};
}

Error Differs(std::string text, const Said& other, int rank) {
  return Error{DTRUN_MISMATCH, std::move(text), -1, ErrorId::kVersionsDiffer, {other.rank, rank}};
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
    if (Status told = Tell(*kv, attempt, wire::Encode(refusal)); !told) return told;
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

std::string WhyNotMade(const Making& making, std::string_view route) {
  if (making.making_kv == nullptr) return {};
  const std::optional<Error> refusal = Refusal(making, route);
  return refusal ? refusal->text : std::string();
}

Status MadeByAll(const Making& making, std::string_view route, dtrun_kv* theirs, Status mine) {
  dtrun_kv* const kv = making.making_kv;
  if (kv == nullptr || making.size == 1) return mine;
  if (!mine) return TellOthers(making, route, theirs, std::move(mine).error());
  if (Status here = kv->Set(MakingKey(route, fmt::format("made/{}", making.rank)), ""); !here) return here;
  const Result<std::int64_t> made = kv->Add(MakingKey(route, "made"), 1);
  if (!made) return made.error();
  if (*made == making.size) return kv->Set(MakingKey(route, "complete"), "");
  const Nanoseconds limit = making.timeout.count() < 0 ? making.timeout : making.timeout + making.patience;
  const Result<std::string> complete = kv->Get(MakingKey(route, "complete"), limit);
  if (complete) return {};
  if (complete.error().code == DTRUN_TIMEOUT) return NotMade(making, route);
  const std::optional<Error> refusal = Refusal(making, route);
  return refusal ? *refusal : complete.error();
}

Status CheckBuilds(dtrun_kv& kv, int rank, const std::string& mine) {
  const Result<std::optional<Said>> other = OtherThan(kv, "first", rank, mine);
  if (!other) return other.error();
  if (!*other) return {};
  return Differs(fmt::format("the ranks have libraries of two versions: rank {} has {}, and rank {} has {}; "
                             "install one version on all hosts and in all environments of Python",
                             (*other)->rank, (*other)->what, rank, mine),
                 **other, rank);
}

Status CheckCapabilities(dtrun_kv& kv, int rank, const std::string& backend, const dtrun_backend_caps& caps) {
  using Member = std::pair<const char*, std::uint64_t>;
  std::string mine;
  for (const auto& [name, value] :
       {Member{"features", caps.features}, Member{"ops", caps.ops}, Member{"dtypes", caps.dtypes},
        Member{"reduces", caps.reduces}, Member{"max_bytes", caps.max_bytes},
        Member{"reduce_dtypes", caps.reduce_dtypes}, Member{"device_kinds", caps.device_kinds}}) {
    mine += fmt::format("{}{} {:#x}", mine.empty() ? "" : ", ", name, value);
  }
  const Result<std::optional<Said>> other = OtherThan(kv, "capabilities", rank, mine);
  if (!other) return other.error();
  if (!*other) return {};
  return Differs(
      fmt::format(
          "backend '{}' says on rank {} that it can do: {}; and on rank {}: {}; a backend has the same "
          "capabilities on all ranks of a job: give all hosts the same libraries and options",
          backend, (*other)->rank, (*other)->what, rank, mine),
      **other, rank);
}

}  // namespace dtrun::comm
