// What tells one state of a plugin file from another: so that a rank loads the very file that was examined
// before the start, and so that a config can pin a file.
//
// A text, of one of these forms:
//   "sha256 <64 hex digits>"                     of all bytes (FIPS 180-4); asked for by a config only
//   "build-id <hex digits>, size <bytes>, changed <seconds>.<nanoseconds>"  as the linker wrote it, and the
//       time of the last write; holds on its own host only, as does
//   "size <bytes>, changed <seconds>.<nanoseconds>"  of a file without a build id
// A build id alone is compared as such: an agent of an older release sends that.
// Functions of the file; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/plugin/opened_file.h"

namespace dtrun::plugin {

// The form of a pin. `digits` may be of either case.
std::string Sha256Id(std::string_view digits);

bool IsPin(std::string_view id);

// The id of the file in the form of `like`; in a form that costs nothing when that is empty. `build_id`: of
// the file, empty when it has none.
Result<std::string> FileId(const OpenedFile& file, const std::string& build_id, std::string_view like);

}  // namespace dtrun::plugin
