#include "core/comm/made_by_all.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error_id.h"
#include "core/comm/told_error.h"
#include "core/plugin/host.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::comm {
namespace {

std::string MakingKey(std::string_view route, std::string_view what) {
  return fmt::format("{}/{}", route, what);
}

std::string MadeKey(std::string_view route, int rank) {
  return MakingKey(route, fmt::format("made/{}", rank));
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
      making.making_kv->CompareSet(MakingKey(route, "refusal"), false, {}, EncodeError(told));
  // If the store is gone, no rank can be told.
  static_cast<void>(making.making_kv->Fail(told.text));
  if (theirs != nullptr) static_cast<void>(theirs->Fail(told.text));
  if (first && !*first) {
    if (std::optional<Error> before = Refusal(making, route)) return IsOwn(mine, *before) ? mine : *before;
  }
  return mine;
}

Error NotMade(const Making& making, std::string_view route) {
  std::vector<int> missing;
  for (int rank = 0; rank < making.size; ++rank) {
    if (!making.making_kv->TryGet(MadeKey(route, rank))) missing.push_back(rank);
  }
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

}  // namespace

std::string WhyNotMade(const Making& making, std::string_view route) {
  if (making.making_kv == nullptr) return {};
  const std::optional<Error> refusal = Refusal(making, route);
  return refusal ? refusal->text : std::string();
}

Status MadeByAll(const Making& making, std::string_view route, dtrun_kv* theirs, Status mine) {
  dtrun_kv* const kv = making.making_kv;
  if (kv == nullptr || making.size == 1) return mine;
  if (!mine) return TellOthers(making, route, theirs, std::move(mine).error());
  if (Status here = kv->Set(MadeKey(route, making.rank), ""); !here) return here;
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

}  // namespace dtrun::comm
