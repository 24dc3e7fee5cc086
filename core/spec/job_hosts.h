// The hosts of the job and their ranks, made from the options that were read. Afterwards there is one list of
// hosts with their slots, from whatever source. Used by the Loader; one thread.
#pragma once

#include "core/spec/builder.h"

namespace dtrun::spec {

// `options` reads those of a launcher that is asked for hosts.
void TakeHosts(Builder& builder, OptionsReader options);

// Converts job.ranks to a number for each host, and checks the size of the job.
void ShareRanks(Builder& builder);

}  // namespace dtrun::spec
