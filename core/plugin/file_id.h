// Identifies the state of a plugin file, so that a rank loads the same file that was examined before the
// start, and a config can pin a file.
//
// The id has one of these forms:
//   "sha256 <64 hex digits>"                     of all bytes (FIPS 180-4); only if a config requests it
//   "build-id <hex digits>, size <bytes>, changed <seconds>.<nanoseconds>"  the linker's build id and the
//       time of the last write; valid on its own host only
//   "size <bytes>, changed <seconds>.<nanoseconds>"  for a file without a build id; likewise
// A build id alone is compared as such: agents of an older release send that. Functions of the file; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/plugin/opened_file.h"

namespace dtrun::plugin {

// The form of a pin. `digits` may be upper or lower case.
std::string Sha256Id(std::string_view digits);

bool IsPin(std::string_view id);

// The id of the file in the form of `like`; if `like` is empty, in a form that needs no hashing. `build_id`
// is the file's, empty if it has none.
Result<std::string> FileId(const OpenedFile& file, const std::string& build_id, std::string_view like);

}  // namespace dtrun::plugin
