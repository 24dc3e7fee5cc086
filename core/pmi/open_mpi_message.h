// Decodes user messages that ranks of Open MPI 4 send to their launcher (orte/util/show_help.c): a file, a
// topic, a flag and the text, packed by opal/dss. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::pmi {

// The text; empty if the bytes have another format.
std::string OpenMpiMessage(std::string_view bytes);

}  // namespace dtrun::pmi
