// The device plugin under test, with owners of what it makes.
//
// What fails throws std::runtime_error, which fails the case. A DeviceSubject may be used by several threads;
// an owner belongs to one. Owners are destroyed before their subject.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_suite.h"
#include "dtrun/abi.h"
#include "dtrun/abi/device.h"
#include "host.h"
#include "subject.h"

namespace dtrun::conformance {

class DeviceSubject {
 public:
  // Loads the plugin and makes an instance.
  explicit DeviceSubject(const BackendUnderTest& under_test);
  ~DeviceSubject();
  DeviceSubject(const DeviceSubject&) = delete;
  DeviceSubject& operator=(const DeviceSubject&) = delete;

  const dtrun_device& table() const { return table_; }  // of full size
  dtrun_instance* instance() const { return instance_; }
  // What a member that is called with a dtrun_error returns. Fails the case when that breaks E2, E3 or E5.
  using Call = std::function<dtrun_status(dtrun_error*)>;
  Outcome Try(const char* member, const Call& call) const;
  // The same for one that must succeed.
  void Do(const char* member, const Call& call) const;

  Outcome Count(std::int32_t* count) const;
  std::int32_t Current() const;
  dtrun_memory PlaceOf(const void* pointer) const;

 private:
  const dtrun_plugin* plugin_ = nullptr;
  dtrun_device table_{};
  std::unique_ptr<dtrun_options> options_;
  dtrun_instance* instance_ = nullptr;
};

dtrun_mem_params MemoryParams(std::int32_t kind, std::int32_t index, std::uint64_t bytes,
                              std::uint64_t alignment = 64);

// A failed case leaves it until its process ends: a stream with pending work may still use
// it.
class DeviceMemory {
 public:
  DeviceMemory(const DeviceSubject& subject, std::int32_t index, std::uint64_t bytes,
               std::uint64_t alignment = 64);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* data() const { return data_; }
  std::uint64_t bytes() const { return params_.bytes; }

  static constexpr std::int32_t kHost = -1;  // as index: memory of the host

 private:
  const DeviceSubject& subject_;
  const dtrun_mem_params params_;
  const int failures_ = std::uncaught_exceptions();
  void* data_ = nullptr;
};

class DeviceEvent {
 public:
  DeviceEvent(const DeviceSubject& subject, std::int32_t index);
  ~DeviceEvent() { Destroy(); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  dtrun_event* get() const { return event_; }

  void Record(const dtrun_stream& stream) const;
  bool Reached() const;
  // At most kPatience; throws when it was not reached then.
  void Await() const;
  // Later work on `stream` starts after it.
  void HoldBack(const dtrun_stream& stream) const;
  void Destroy();

 private:
  const DeviceSubject& subject_;
  dtrun_event* event_ = nullptr;
};

class DeviceStream {
 public:
  DeviceStream(const DeviceSubject& subject, std::int32_t index, std::int32_t priority = 0);
  ~DeviceStream() { Destroy(); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  const dtrun_stream& get() const { return stream_; }

  void Copy(void* to, const void* from, std::uint64_t bytes) const;
  void Copy(const DeviceMemory& to, const DeviceMemory& from) const {
    Copy(to.data(), from.data(), to.bytes());
  }
  // Waits until its work has ended.
  void Finish() const;
  void Destroy();

 private:
  const DeviceSubject& subject_;
  dtrun_stream stream_{};
  bool there_ = false;
};

// Holds streams back until it is opened. Opens itself at the end, and waits for the streams, which must still
// be there unless they were destroyed by Destroy.
class Gate {
 public:
  explicit Gate(const DeviceSubject& subject) : subject_(subject), memory_(subject, DeviceMemory::kHost, 64) {
    Set(0);
  }
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Whether the device can be held back; else the case is skipped, with the plugin's reason.
  bool Hold(const DeviceStream& stream, std::uint32_t until = 1);
  void Set(std::uint32_t value) const;
  void Open() const { Set(0x7fffffff); }

 private:
  const DeviceSubject& subject_;
  const DeviceMemory memory_;
  std::vector<std::unique_ptr<DeviceEvent>> passed_;  // events that each stream reaches after its release
};

}  // namespace dtrun::conformance
