// The messages for the user that ranks of Open MPI 4 give their launcher (orte/util/show_help.c): a
// file, a topic, a flag and the text, packed by its opal/dss. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::pmi {

// The text; empty when the bytes are something else.
std::string OpenMpiMessage(std::string_view bytes);

}  // namespace dtrun::pmi
