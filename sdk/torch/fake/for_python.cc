// The fake device for Python's torch: loading this library beside torch registers it, and these functions are
// the streams of tests/torch_backend/fake_device.py. Streams are torch's numbers of them. Any thread.
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>

#include "sdk/torch/fake/fake_device.h"

namespace {

namespace fake = dtrun::fake;

c10::impl::VirtualGuardImpl Guard() { return c10::impl::VirtualGuardImpl(c10::DeviceType::PrivateUse1); }
c10::Stream Of(int device, std::int64_t id) {
  return c10::Stream(c10::Stream::UNSAFE, fake::device(device), static_cast<c10::StreamId>(id));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int fake_devices() { return fake::kDevices; }
int fake_current_device() { return Guard().getDevice().index(); }
void fake_set_device(int device) { Guard().setDevice(fake::device(device)); }
std::int64_t fake_current_stream(int device) { return Guard().getStream(fake::device(device)).id(); }
void fake_set_stream(int device, std::int64_t id) { (void)Guard().exchangeStream(Of(device, id)); }
std::int64_t fake_make_stream(int device) { return fake::torch_stream(*fake::make_stream(device)).id(); }

// Later work of `waiting` starts after what is on `other` now.
void fake_wait_stream(int device, std::int64_t waiting, std::int64_t other) {
  fake::Event event;
  event.record(fake::stream_of(Of(device, other)));
  event.block(fake::stream_of(Of(device, waiting)));
}
void fake_used_on(void* memory, int device, std::int64_t id) {
  fake::used_on(memory, fake::stream_of(Of(device, id)));
}
void fake_ignore_waits_of_default_streams() { fake::ignore(fake::Ignored::waits_of_default_streams); }
void fake_set_delays(std::uint64_t seed, int longest_us) { fake::set_delays({seed, longest_us, 0}); }
std::uint64_t fake_host_waits() { return fake::host_waits(); }
void fake_settle() { fake::settle(); }
}
#pragma GCC visibility pop
