// The one error type inside core.
//
// A value, owned by its holder; any thread may read it. What happened is data: an id, the ranks, named
// arguments. The text for people follows the rules of dtrun/abi/error.h: lower case, values quoted, exact
// cause, next step last. It is written where the cause is first known and not wrapped again on the way up; it
// is never read back for a fact.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtrun/abi/error.h"

namespace dtrun {

enum class ErrorId : std::uint16_t;  // core/base/error_id.h

struct Error {
  dtrun_status code = DTRUN_INTERNAL;
  std::string text;
  int peer = -1;                                 // rank that failed or disconnected; -1 when unknown
  ErrorId id{};                                  // what happened; none: no more than the code says
  std::vector<int> ranks = {};                   // that it speaks of; empty: `peer` alone, if known
  std::map<std::string, std::string> args = {};  // error_id.h names those of each id

  std::int64_t vendor_code = 0;  // a vendor library's own number, and the library: "errno", "nccl"
  std::string vendor_domain = {};

  // `action` is the operation that failed ("open '/x/y'"); the text becomes "open '/x/y': no such
  // file or directory". `number` is an errno value.
  static Error System(std::string_view action, int number);
  // With a formatted text: Of(DTRUN_NOT_FOUND, "there is no file '{}'", name).
  template <class... Args>
  static Error Of(dtrun_status code, fmt::format_string<Args...> format, Args&&... args) {
    return Error{code, fmt::format(format, std::forward<Args>(args)...)};
  }

  // "comm.timeout"; without an id the name of the code, such as "timeout".
  std::string_view Id() const;
  // `ranks`, or `peer` alone.
  std::vector<int> Ranks() const;
  // An argument; empty: it has none of that name.
  std::string_view Arg(const std::string& name) const;
  // The same error where rank i has the number numbers[i]. Ranks outside become unknown.
  Error Renumbered(const std::vector<int>& numbers) const;

  // Fills a caller's struct, which may be null, and returns the code. Long text is truncated at a
  // UTF-8 character boundary. LastCopied returns this error on this thread.
  dtrun_status CopyTo(dtrun_error* out) const;
  // The id and ranks of the last error that was copied into a struct by this thread, if `filled` still holds
  // it; else of the code and peer in `filled`.
  static Error LastCopied(const dtrun_error& filled);
};

// The id with that name; none if there is no such id.
ErrorId ErrorIdOf(std::string_view name);

// dtrun's exit code for errors that the user can fix before any rank starts: options, configuration, hosts.
inline constexpr int kUserError = 2;

// "invalid argument", "timeout", ...; "internal error" for unknown values.
const char* StatusText(dtrun_status status);

// Validates errors returned by plugins, which core does not trust: invalid statuses, texts without a
// terminator or with control characters. Values and pure functions; any thread.

// The error struct that core passes to a plugin's member. Not DTRUN_ERROR_INIT: clearing the whole message
// costs as much as the rest of a small call, and an empty one needs a single byte.
struct PluginError : dtrun_error {
  PluginError() {
    struct_size = sizeof(dtrun_error);
    Clear();
  }
  void Clear() {
    flags = 0;
    code = DTRUN_OK;
    peer = -1;
    vendor_code = 0;
    std::memset(vendor_domain, 0, sizeof vendor_domain);
    message[0] = '\0';
  }
};

// Converts a plugin's failure, with `context` in front. `status` is the member's return value and overrides
// the code in `cause`. An invalid status becomes DTRUN_INTERNAL, and the text says so.
Error Explained(dtrun_status status, const dtrun_error& cause, std::string_view context);

// Names the ulimit to raise after memory or descriptors run out (ENOMEM, EMFILE). Any thread.

// Describes the exception and the limit to check: "out of memory; raise `ulimit -v`, which is
// 30000".
std::string Exhausted(const std::exception& thrown);
// Where the system refuses a thread, for lack of processes or of memory: that, and the limits to raise.
std::string NoThread();

// From now on a process that cannot go on without more memory says so and exits with `code`, also where no
// handler can catch it, as in a destructor of a library. Call it first in main.
void EndWhenExhausted(int code);

// What takes the memory, for that message: "planning 1000000 ranks on 1000 hosts". One at a time; main
// thread.
class MemoryUser {
 public:
  explicit MemoryUser(std::string what);
  ~MemoryUser();
  MemoryUser(const MemoryUser&) = delete;
  MemoryUser& operator=(const MemoryUser&) = delete;
};

}  // namespace dtrun
