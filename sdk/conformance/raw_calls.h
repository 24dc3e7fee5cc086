// Calls of a backend's members with structs as the suite makes them, for what Subject and Rank hide. Any
// thread.
#pragma once

#include "subject.h"

namespace dtrun::conformance {

dtrun_error EmptyError();

// Of a communicator on one host.
dtrun_comm_params Params(dtrun_kv* kv, int rank, int size, const std::int32_t* hosts);

// Enqueues a guarded copy of `bytes` bytes, which is gone when it waits.
dtrun_status RunGuarded(const Subject& subject, const Rank& rank, const dtrun_op& op, std::size_t bytes,
                        dtrun_error* error);

// Members of a dtrun_launch_sink that take what comes.
dtrun_status TakeFact(void*, const char*, dtrun_string, dtrun_error*);
dtrun_status TakeVariable(void*, const char*, const char*, dtrun_error*);

}  // namespace dtrun::conformance
