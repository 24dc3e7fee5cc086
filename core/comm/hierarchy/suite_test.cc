// The hierarchy over two hosts: everything a backend must do is inherited.
#include "sdk/conformance/backend_suite.h"

namespace dtrun::conformance {
namespace {

const bool kRegistered = RegisterBackendSuite(
    {.plugin = HIERARCHY_PLUGIN_FILE,
     .options = {{"hosts", "2"}, {"deal", HIERARCHY_DEAL}, {"wire", HIERARCHY_WIRE}},
     .skips = {{"Collectives.SixteenBitSumsAreAccumulatedInFloat32",
                "sums are rounded once per host, see docs/decisions/007-hierarchy.md"}}});

}  // namespace
}  // namespace dtrun::conformance
