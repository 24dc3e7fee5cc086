// Runs something in a process of its own, for what a process can do only once: reading NCCL's
// environment, touching a device.
#pragma once

#include <functional>
#include <string>

namespace dtrun::nccl_test {

// What `body` returned in the child, or the text of the exception it threw.
std::string InChild(const std::function<std::string()>& body);

}  // namespace dtrun::nccl_test
