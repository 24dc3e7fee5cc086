#include "device_subject.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "dtrun/plugin/failure.hpp"
#include "load.h"
#include "own_process.h"

namespace dtrun::conformance {

DeviceSubject::DeviceSubject(const BackendUnderTest& under_test)
    : plugin_(LoadPlugin(under_test.plugin, DTRUN_KIND_DEVICE)) {
  if (plugin_->struct_size < offsetof(dtrun_plugin, device) + sizeof plugin_->device ||
      plugin_->device == nullptr)
    throw std::runtime_error("the table has no device");
  table_ = sdk::internal::ReadStruct(plugin_->device);
  options_ = MakeOptions(*plugin_, under_test.options);
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_status status =
      sdk::InitPlugin(*plugin_, Host(DTRUN_KIND_DEVICE), options_.get(), &instance_, &error);
  EndIfCopied();
  if (status != DTRUN_OK) throw std::runtime_error(std::string("init: ") + error.message);
  if (instance_ == nullptr) throw std::runtime_error("init returned DTRUN_OK and left *out untouched");
}

DeviceSubject::~DeviceSubject() {
  if (instance_ != nullptr) plugin_->shutdown(instance_);
}

Outcome DeviceSubject::Try(const char* member, const Call& call) const {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  Outcome outcome;
  outcome.code = call(&error);
  EndIfCopied();
  if (outcome.code == DTRUN_OK || outcome.code == DTRUN_PENDING) return outcome;
  EXPECT_TRUE(outcome.code > DTRUN_PENDING && outcome.code <= DTRUN_MISMATCH)
      << member << ": status " << outcome.code << " does not exist (E2)";
  EXPECT_NE(std::memchr(error.message, '\0', sizeof error.message), nullptr)
      << member << ": its text does not end (E5)";
  outcome.text = std::string(error.message, strnlen(error.message, sizeof error.message));
  EXPECT_NE(outcome.text, "") << member << " failed without a text (E3)";
  return outcome;
}

void DeviceSubject::Do(const char* member, const Call& call) const {
  const Outcome outcome = Try(member, call);
  if (outcome.code == DTRUN_OK) return;
  throw std::runtime_error(std::string(member) + " failed with status " + std::to_string(outcome.code) +
                           ": " + outcome.text);
}

Outcome DeviceSubject::Count(std::int32_t* count) const {
  return Try("count", [&](dtrun_error* error) { return table_.count(instance_, count, error); });
}

std::int32_t DeviceSubject::Current() const {
  std::int32_t current = -1;
  Do("current", [&](dtrun_error* error) { return table_.current(instance_, &current, error); });
  return current;
}

dtrun_memory DeviceSubject::PlaceOf(const void* pointer) const {
  dtrun_memory place;
  DTRUN_INIT(place);
  place.device_kind = place.device_index = -7;
  Do("memory_of", [&](dtrun_error* error) { return table_.memory_of(instance_, pointer, &place, error); });
  return place;
}

dtrun_mem_params MemoryParams(std::int32_t kind, std::int32_t index, std::uint64_t bytes,
                              std::uint64_t alignment) {
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = bytes;
  params.alignment = alignment;
  params.device_kind = kind;
  params.device_index = index;
  return params;
}

DeviceMemory::DeviceMemory(const DeviceSubject& subject, std::int32_t index, std::uint64_t bytes,
                           std::uint64_t alignment)
    : subject_(subject),
      params_(
          MemoryParams(index == kHost ? static_cast<std::int32_t>(DTRUN_DEVICE_HOST) : subject.table().kind,
                       index, bytes, alignment)) {
  subject.Do("mem_alloc", [&](dtrun_error* error) {
    return subject.table().mem_alloc(subject.instance(), &params_, &data_, error);
  });
  if (data_ == nullptr) throw std::runtime_error("mem_alloc returned DTRUN_OK and left *out untouched");
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr && std::uncaught_exceptions() == failures_)
    subject_.table().mem_free(subject_.instance(), &params_, data_);
}

DeviceEvent::DeviceEvent(const DeviceSubject& subject, std::int32_t index) : subject_(subject) {
  subject.Do("event_create", [&](dtrun_error* error) {
    return subject.table().event_create(subject.instance(), index, &event_, error);
  });
  if (event_ == nullptr) throw std::runtime_error("event_create returned DTRUN_OK and left *out untouched");
}

void DeviceEvent::Destroy() {
  if (event_ != nullptr) subject_.table().event_destroy(subject_.instance(), std::exchange(event_, nullptr));
}

void DeviceEvent::Record(const dtrun_stream& stream) const {
  subject_.Do("event_record", [&](dtrun_error* error) {
    return subject_.table().event_record(subject_.instance(), event_, &stream, error);
  });
}

bool DeviceEvent::Reached() const {
  const Outcome outcome = subject_.Try("event_test", [&](dtrun_error* error) {
    return subject_.table().event_test(subject_.instance(), event_, error);
  });
  if (outcome.code != DTRUN_OK && outcome.code != DTRUN_PENDING)
    throw std::runtime_error("event_test failed: " + outcome.text);
  return outcome.ok();
}

void DeviceEvent::Await() const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!Reached()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("an event was not reached, although nothing holds its stream back");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void DeviceEvent::HoldBack(const dtrun_stream& stream) const {
  subject_.Do("event_wait", [&](dtrun_error* error) {
    return subject_.table().event_wait(subject_.instance(), event_, &stream, error);
  });
}

DeviceStream::DeviceStream(const DeviceSubject& subject, std::int32_t index, std::int32_t priority)
    : subject_(subject) {
  dtrun_stream_params params;
  DTRUN_INIT(params);
  params.device_index = index;
  params.priority = priority;
  DTRUN_INIT(stream_);
  subject.Do("stream_create", [&](dtrun_error* error) {
    return subject.table().stream_create(subject.instance(), &params, &stream_, error);
  });
  there_ = true;
  EXPECT_EQ(stream_.device_kind, subject.table().kind) << "of a stream that stream_create gave";
  EXPECT_EQ(stream_.device_index, index) << "of a stream that stream_create gave";
}

void DeviceStream::Copy(void* to, const void* from, std::uint64_t bytes) const {
  subject_.Do("copy", [&](dtrun_error* error) {
    return subject_.table().copy(subject_.instance(), to, from, bytes, &stream_, error);
  });
}

void DeviceStream::Finish() const {
  const DeviceEvent end(subject_, stream_.device_index);
  end.Record(stream_);
  end.Await();
}

void DeviceStream::Destroy() {
  if (std::exchange(there_, false)) subject_.table().stream_destroy(subject_.instance(), &stream_);
}

Gate::~Gate() {
  Open();
  try {
    for (const auto& event : passed_) event->Await();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

bool Gate::Hold(const DeviceStream& stream, std::uint32_t until) {
  const Outcome outcome = subject_.Try("counter_wait", [&](dtrun_error* error) {
    return subject_.table().counter_wait(
        subject_.instance(), static_cast<const std::uint32_t*>(memory_.data()), until, &stream.get(), error);
  });
  if (outcome.code == DTRUN_UNSUPPORTED) return false;
  if (!outcome.ok()) throw std::runtime_error("counter_wait failed: " + outcome.text);
  passed_.push_back(std::make_unique<DeviceEvent>(subject_, stream.get().device_index));
  passed_.back()->Record(stream.get());
  return true;
}

void Gate::Set(std::uint32_t value) const {
  __atomic_store_n(static_cast<std::uint32_t*>(memory_.data()), value, __ATOMIC_RELEASE);
}

}  // namespace dtrun::conformance
