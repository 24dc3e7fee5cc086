// What the cases of devices share: whether there is a device to try, and patterns of bytes. Pure, or as
// device_subject.h says.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "device_subject.h"

namespace dtrun::conformance {

inline constexpr std::uint64_t kBytes = 4096;
// Gives the number of devices to `body`. Without a device there is no case.
template <class Body>
void WithDevices(const BackendUnderTest& under_test, Body&& body) {
  const DeviceSubject subject(under_test);
  std::int32_t count = 0;
  const Outcome outcome = subject.Count(&count);
  if (outcome.code == DTRUN_FAILED_PRECONDITION) GTEST_SKIP() << "no device here: " << outcome.text;
  ASSERT_TRUE(outcome.ok()) << outcome;
  ASSERT_GT(count, 0) << "without a device it must fail with DTRUN_FAILED_PRECONDITION";
  body(subject, count);
}

// The first device and the last one.
inline std::vector<std::int32_t> SomeOf(std::int32_t count) {
  if (count == 1) return {0};
  return {0, count - 1};
}

inline void Fill(const DeviceMemory& host, unsigned char first) {
  auto* const bytes = static_cast<unsigned char*>(host.data());
  for (std::uint64_t i = 0; i < host.bytes(); ++i) bytes[i] = static_cast<unsigned char>(first + i * 7);
}

inline bool Same(const DeviceMemory& one, const DeviceMemory& other) {
  return std::memcmp(one.data(), other.data(), one.bytes()) == 0;
}

}  // namespace dtrun::conformance
