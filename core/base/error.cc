#include "core/base/error.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/error_id.h"
#include "core/base/standard_output.h"
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

std::string memory_user;
std::unique_ptr<char[]> reserve;  // for the message
int exit_code = 0;
std::terminate_handler otherwise = nullptr;

// "`ulimit -v`, which is 30000": the limit of this process's memory; empty: there is none.
std::string MemoryLimit() {
  constexpr rlim_t kUnit = 1024;  // the unit of the shell's ulimit, in bytes
  for (const auto& [kind, flag] : {std::pair(RLIMIT_AS, 'v'), std::pair(RLIMIT_DATA, 'd')}) {
    rlimit limit{};
    if (::getrlimit(kind, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      return fmt::format("`ulimit -{}`, which is {}", flag, limit.rlim_cur / kUnit);
  }
  return {};
}

[[noreturn]] void EndIfExhausted() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc& thrown) {
    reserve.reset();
    WriteMessage(
        fmt::format("dtrun: {}{}{}\n", memory_user, memory_user.empty() ? "" : ": ", Exhausted(thrown)));
    ::_exit(exit_code);
  } catch (...) {  // as it would have ended
  }
  otherwise();
  std::abort();
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

Error Explained(dtrun_status status, const dtrun_error& cause, std::string_view context) {
  const bool known = status > DTRUN_PENDING && status <= DTRUN_MISMATCH;
  std::string text = Printable({cause.message, ::strnlen(cause.message, sizeof cause.message)});
  if (text.empty()) text = known ? StatusText(status) : "it failed and did not say why";
  if (!known) text += fmt::format(" (it returned {}, which is not the status of a failure)", status);
  if (!context.empty()) text = fmt::format("{}: {}", context, text);
  Error error{known ? status : DTRUN_INTERNAL, std::move(text), std::max(cause.peer, -1)};
  error.vendor_domain.assign(cause.vendor_domain, ::strnlen(cause.vendor_domain, sizeof cause.vendor_domain));
  error.vendor_code = cause.vendor_code;
  return error;
}

void EndWhenExhausted(int code) {
  constexpr std::size_t kReserve = 256 << 10;
  reserve = std::make_unique<char[]>(kReserve);
  exit_code = code;
  if (otherwise == nullptr) otherwise = std::set_terminate(EndIfExhausted);
}

MemoryUser::MemoryUser(std::string what) { memory_user = std::move(what); }
MemoryUser::~MemoryUser() { memory_user.clear(); }

std::string NoThread() {
  const std::string memory = MemoryLimit();
  return "no thread can be started; raise `ulimit -u` (processes)" + (memory.empty() ? "" : " or " + memory);
}

std::string Exhausted(const std::exception& thrown) {
  const auto* const system = dynamic_cast<const std::system_error*>(&thrown);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) return NoThread();
  if (dynamic_cast<const std::bad_alloc*>(&thrown) == nullptr)
    return fmt::format("{}; look at `ulimit -a`", thrown.what());
  const std::string limit = MemoryLimit();
  if (!limit.empty()) return "out of memory; raise " + limit;
  return "out of memory; end other programs of this host, or raise the memory limit of its cgroup";
}

}  // namespace dtrun
