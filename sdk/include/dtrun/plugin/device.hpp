// device.hpp - base class of a device, and the C table made from it.
//
// Core owns the object and the events that it makes; streams and memory are values of the device's own
// library. dtrun/abi/device.h says what a method promises, beside the slot of the same name: all may be
// called by any thread, by several at once, and leave the thread's current device as it was. Overrides are
// public and not overloaded.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "dtrun/plugin/backend.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // The owner of the memory of a pointer. By default the host: also of memory that the library does not know.
  struct MemoryPlace {
    int device_kind = DTRUN_DEVICE_HOST;
    int device_index = -1;  // -1 with DTRUN_DEVICE_HOST, and where the library moves it between the two
  };

  // A place in a stream is an EventT, which is destroyed by any thread. The derived class has
  //   static constexpr int kDeviceKind = DTRUN_DEVICE_CUDA;  // or another, or DTRUN_DEVICE_OTHER + something
  // and a public constructor (const Host&, const Options&), called by `init`: the place to open a vendor
  // library.
  template <class EventT>
  class Device {
   public:
    using EventType = EventT;
    static constexpr int kKind = DTRUN_KIND_DEVICE;

    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    // How many devices there are; throws Failure(DTRUN_FAILED_PRECONDITION) with the reason for none.
    virtual int Count() = 0;
    // The calling thread's device.
    virtual int Current() = 0;
    // Optional: one line for people.
    virtual std::string Describe(int /*device_index*/) { return {}; }

    virtual MemoryPlace MemoryOf(const void* pointer) = 0;
    virtual void* MemAlloc(const dtrun_mem_params& params) = 0;
    virtual void MemFree(const dtrun_mem_params& params, void* memory) = 0;

    // The library's own handle.
    virtual void* StreamCreate(const dtrun_stream_params& params) = 0;
    virtual void StreamDestroy(const dtrun_stream& stream) = 0;
    // Optional: whether what is queued goes into a graph. Without it streams are never captured.
    virtual bool StreamCapturing(const dtrun_stream& /*stream*/) { return false; }
    virtual void Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream& stream) = 0;

    virtual std::unique_ptr<EventT> EventCreate(int device_index) = 0;
    virtual void EventRecord(EventT& event, const dtrun_stream& stream) = 0;
    // True when the stream has reached it.
    virtual bool EventTest(EventT& event) = 0;
    virtual void EventWait(EventT& event, const dtrun_stream& stream) = 0;

    // Throws Failure(DTRUN_UNSUPPORTED), with the reason, where the device cannot wait so.
    virtual void CounterWait(const std::uint32_t* counter, std::uint32_t value,
                             const dtrun_stream& stream) = 0;
  };

  namespace internal {

  // The slots. T is the author's Device.
  template <class T>
  struct DeviceSlots {
    using EventT = typename T::EventType;
    using Base = Device<EventT>;
    static_assert(std::is_base_of_v<Base, T>, "derive from dtrun::sdk::Device<YourEvent>");
    static_assert(T::kDeviceKind > DTRUN_DEVICE_HOST && T::kDeviceKind < 63, "kDeviceKind is 1 to 62");

    static constexpr bool kDescribes = kOverridden<decltype(&T::Describe), decltype(&Base::Describe)>;
    static constexpr bool kCaptures =
        kOverridden<decltype(&T::StreamCapturing), decltype(&Base::StreamCapturing)>;

    static T& Self(dtrun_instance* self) noexcept { return As<Instance<T>>(self)->object; }
    static dtrun_stream Read(const dtrun_stream* stream) { return ReadKnown(stream, "dtrun_stream"); }

    static dtrun_status Count(dtrun_instance* self, std::int32_t* out, dtrun_error* err) noexcept {
      return Do(err, [&] { *out = Self(self).Count(); });
    }
    static dtrun_status Current(dtrun_instance* self, std::int32_t* out, dtrun_error* err) noexcept {
      return Do(err, [&] { *out = Self(self).Current(); });
    }
    static dtrun_status Describe(dtrun_instance* self, std::int32_t device_index, char* text,
                                 std::uint64_t bytes, dtrun_error* err) noexcept {
      return Do(err, [&] {
        const std::string line = Self(self).Describe(device_index);
        if (bytes > 0) CopyCut(text, static_cast<std::size_t>(bytes), line);
      });
    }
    static dtrun_status MemoryOf(dtrun_instance* self, const void* pointer, dtrun_memory* out,
                                 dtrun_error* err) noexcept {
      return Do(err, [&] {
        const MemoryPlace place = Self(self).MemoryOf(pointer);
        dtrun_memory raw;
        DTRUN_INIT(raw);
        raw.device_kind = place.device_kind;
        raw.device_index = place.device_index;
        WriteStruct(out, raw);
      });
    }
    static dtrun_status MemAlloc(dtrun_instance* self, const dtrun_mem_params* params, void** out,
                                 dtrun_error* err) noexcept {
      return Do(err, [&] {
        void* const memory = Self(self).MemAlloc(ReadKnown(params, "dtrun_mem_params"));
        if (memory == nullptr) throw Failure(DTRUN_OUT_OF_MEMORY, "MemAlloc returned null");
        *out = memory;
      });
    }
    static void MemFree(dtrun_instance* self, const dtrun_mem_params* params, void* memory) noexcept {
      GuardVoid(As<Instance<T>>(self)->host, "mem_free",
                [&] { Self(self).MemFree(ReadStruct(params), memory); });
    }
    static dtrun_status StreamCreate(dtrun_instance* self, const dtrun_stream_params* params,
                                     dtrun_stream* out, dtrun_error* err) noexcept {
      return Do(err, [&] {
        const dtrun_stream_params wanted = ReadKnown(params, "dtrun_stream_params");
        dtrun_stream raw;
        DTRUN_INIT(raw);
        raw.device_kind = T::kDeviceKind;
        raw.device_index = wanted.device_index;
        raw.native = Self(self).StreamCreate(wanted);
        WriteStruct(out, raw);
      });
    }
    static void StreamDestroy(dtrun_instance* self, const dtrun_stream* stream) noexcept {
      GuardVoid(As<Instance<T>>(self)->host, "stream_destroy",
                [&] { Self(self).StreamDestroy(ReadStruct(stream)); });
    }
    static dtrun_status StreamCapturing(dtrun_instance* self, const dtrun_stream* stream, std::int32_t* out,
                                        dtrun_error* err) noexcept {
      return Do(err, [&] { *out = Self(self).StreamCapturing(Read(stream)) ? 1 : 0; });
    }
    static dtrun_status Copy(dtrun_instance* self, void* to, const void* from, std::uint64_t bytes,
                             const dtrun_stream* stream, dtrun_error* err) noexcept {
      return Do(err, [&] { Self(self).Copy(to, from, bytes, Read(stream)); });
    }
    static dtrun_status EventCreate(dtrun_instance* self, std::int32_t device_index, dtrun_event** out,
                                    dtrun_error* err) noexcept {
      return Do(err, [&] {
        std::unique_ptr<EventT> event = Self(self).EventCreate(device_index);
        if (event == nullptr) throw Failure(DTRUN_INTERNAL, "EventCreate returned null");
        *out = As<dtrun_event>(event.release());
      });
    }
    static void EventDestroy(dtrun_instance*, dtrun_event* event) noexcept { delete As<EventT>(event); }
    static dtrun_status EventRecord(dtrun_instance* self, dtrun_event* event, const dtrun_stream* stream,
                                    dtrun_error* err) noexcept {
      return Do(err, [&] { Self(self).EventRecord(*As<EventT>(event), Read(stream)); });
    }
    static dtrun_status EventTest(dtrun_instance* self, dtrun_event* event, dtrun_error* err) noexcept {
      return Guard(err, [&] {
        return dtrun_status{Self(self).EventTest(*As<EventT>(event)) ? DTRUN_OK : DTRUN_PENDING};
      });
    }
    static dtrun_status EventWait(dtrun_instance* self, dtrun_event* event, const dtrun_stream* stream,
                                  dtrun_error* err) noexcept {
      return Do(err, [&] { Self(self).EventWait(*As<EventT>(event), Read(stream)); });
    }
    static dtrun_status CounterWait(dtrun_instance* self, const std::uint32_t* counter, std::uint32_t value,
                                    const dtrun_stream* stream, dtrun_error* err) noexcept {
      return Do(err, [&] { Self(self).CounterWait(counter, value, Read(stream)); });
    }

    static constexpr dtrun_device Table() {
      dtrun_device table{};
      table.struct_size = sizeof table;
      table.kind = T::kDeviceKind;
      table.count = &Count;
      table.current = &Current;
      if (kDescribes) table.describe = &Describe;
      table.memory_of = &MemoryOf;
      table.mem_alloc = &MemAlloc;
      table.mem_free = &MemFree;
      table.stream_create = &StreamCreate;
      table.stream_destroy = &StreamDestroy;
      if (kCaptures) table.stream_capturing = &StreamCapturing;
      table.copy = &Copy;
      table.event_create = &EventCreate;
      table.event_destroy = &EventDestroy;
      table.event_record = &EventRecord;
      table.event_test = &EventTest;
      table.event_wait = &EventWait;
      table.counter_wait = &CounterWait;
      return table;
    }
  };

  template <class T>
  inline constexpr dtrun_device kDeviceTable = DeviceSlots<T>::Table();

  }  // namespace internal
}  // namespace v1
}  // namespace dtrun::sdk
