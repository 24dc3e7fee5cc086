// The one error type inside core.
//
// A value, owned by its holder; any thread may read it. What happened is data: an id, the ranks, named
// arguments. The text for people follows the rules of dtrun/abi/error.h: lower case, values quoted, exact
// cause, next step last. It is written where the cause is first known and not wrapped again on the way up; it
// is never read back for a fact.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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

}  // namespace dtrun
