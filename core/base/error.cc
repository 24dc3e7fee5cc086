#include "core/base/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>

#include "core/base/error_id.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

struct StatusNames {
  const char* text;
  const char* id;
};

constexpr StatusNames kStatuses[] = {
    {"ok", "ok"},
    {"pending", "pending"},
    {"invalid argument", "invalid_argument"},
    {"unsupported", "unsupported"},
    {"failed precondition", "failed_precondition"},
    {"not found", "not_found"},
    {"out of memory", "out_of_memory"},
    {"timeout", "timeout"},
    {"aborted", "aborted"},
    {"remote failure", "remote_failure"},
    {"system error", "system"},
    {"vendor library error", "vendor"},
    {"busy", "busy"},
    {"internal error", "internal"},
    {"mismatch between ranks", "mismatch"},
};
static_assert(std::size(kStatuses) == DTRUN_MISMATCH + 1);

const StatusNames& NamesOf(dtrun_status status) {
  return kStatuses[status >= 0 && status <= DTRUN_MISMATCH ? status : DTRUN_INTERNAL];
}

constexpr std::string_view kIds[] = {"",
#define DTRUN_ERROR_ID(name, text) text,
                                     DTRUN_ERROR_IDS(DTRUN_ERROR_ID)
#undef DTRUN_ERROR_ID
};

Error& Copied() {
  thread_local Error error;
  return error;
}

}  // namespace

Error Error::System(std::string_view action, int number) {
  std::string cause = std::generic_category().message(number);
  if (!cause.empty()) cause[0] = ToLower(cause[0]);
  if (rlimit limit{}; number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    cause += "; raise `ulimit -n`, which is " + std::to_string(limit.rlim_cur);
  return Error{DTRUN_SYSTEM, std::string(action) + ": " + cause, -1};
}

std::string_view Error::Id() const {
  return id == ErrorId::kNone ? NamesOf(code).id : kIds[static_cast<int>(id)];
}

std::vector<int> Error::Ranks() const {
  if (!ranks.empty() || peer < 0) return ranks;
  return {peer};
}

std::string_view Error::Arg(const std::string& name) const {
  const auto found = args.find(name);
  return found == args.end() ? std::string_view() : found->second;
}

Error Error::Renumbered(const std::vector<int>& numbers) const {
  const auto of = [&](int rank) {
    return rank >= 0 && rank < std::ssize(numbers) ? numbers[static_cast<std::size_t>(rank)] : -1;
  };
  Error out = *this;
  out.peer = of(peer);
  out.ranks.clear();
  for (const int rank : ranks) {
    if (of(rank) >= 0) out.ranks.push_back(of(rank));
  }
  return out;
}

dtrun_status Error::CopyTo(dtrun_error* out) const {
  if (out != nullptr) Copied() = *this;
  dtrun_error_set_text(out, code, peer, text.data(), text.size());
  if (!vendor_domain.empty()) dtrun_error_set_vendor(out, vendor_domain.c_str(), vendor_code);
  return code;
}

Error Error::LastCopied(const dtrun_error& filled) {
  const std::string_view text(filled.message, ::strnlen(filled.message, sizeof filled.message));
  const Error& last = Copied();
  if (last.code == filled.code && last.peer == filled.peer && last.text.starts_with(text)) return last;
  return Error{filled.code, std::string(text), filled.peer};
}

ErrorId ErrorIdOf(std::string_view name) {
  for (std::size_t i = 1; i < std::size(kIds); ++i) {
    if (kIds[i] == name) return static_cast<ErrorId>(i);
  }
  return ErrorId::kNone;
}

const char* StatusText(dtrun_status status) { return NamesOf(status).text; }

}  // namespace dtrun
