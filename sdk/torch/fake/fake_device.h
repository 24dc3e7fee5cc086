// The fake accelerator as a torch device of type PrivateUse1: allocator, guard, streams, events, operators.
//
// Its streams' numbers are pointers to fake::Stream, 0 being the device's default stream. Every operator that
// torch has for the CPU works, but for views that are not listed in fake_device.cc: the output's shape is
// found by running it on zeros, once for each kind of arguments, and the work is queued on the current
// stream. Registered when the program starts; any thread.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "sdk/fake/accelerator.h"

namespace dtrun::fake {

inline c10::Device device(int index) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)};
}
Stream& stream_of(const c10::Stream& stream);
c10::Stream torch_stream(Stream& stream);

}  // namespace dtrun::fake
