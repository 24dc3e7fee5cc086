// A run of `dtrun bench`: every size, every round, every column, one after the other.
//
// Called once, by the main thread.
#pragma once

#include "core/process/lifeline.h"
#include "tools/bench/program/options.h"

namespace dtrun::bench {

// Prints header and rows on stdout, troubles on stderr, and writes the files. 0; 1 when a result was
// wrong, one of our layers failed midway, or nothing could be measured; 2 when the run is too big for
// this machine or a file cannot be written; 128 + signal when interrupted.
// REQUIRES: called by the work of node::Guarded.
int Sweep(const Request& request, process::Lifeline& lifeline);

}  // namespace dtrun::bench
