// How messages call an operation. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "dtrun/abi/backend.h"

namespace dtrun::mpi_plugin {

// "allreduce of 10 float32 (sum)", "broadcast of 3 int8 from rank 2".
std::string DescribeCall(std::int32_t kind, std::int32_t dtype, std::int32_t reduce, std::int32_t root,
                         std::uint64_t count);
// "allreduce 7", "recv from rank 1 with tag 3".
std::string OperationText(const dtrun_op& op);

}  // namespace dtrun::mpi_plugin
