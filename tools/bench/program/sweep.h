// A run of `dtrun bench`: measures every size, round and column in sequence.
//
// Called once, by the main thread.
#pragma once

#include "core/process/lifeline.h"
#include "tools/bench/program/options.h"

namespace dtrun::bench {

// Prints the header and rows on stdout and problems on stderr, and writes the files. Returns 0. Returns 1 if
// a result was wrong, one of dtrun's layers failed midway, or nothing could be measured. Returns 2 if the run
// is too large for this machine or a file cannot be written. Returns 128 + signal after an interrupt.
// REQUIRES: called by the work of node::Guarded.
int Sweep(const Request& request, process::Lifeline& lifeline);

}  // namespace dtrun::bench
