// What every device plugin must do: devices that are counted and described, memory that knows its device,
// structs and errors of any size, several threads. stream_suite.cc has the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "device_case.h"
#include "guard.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

using Under = BackendUnderTest;

// ---- devices

void DevicesAreCounted(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    EXPECT_TRUE(subject.table().kind > DTRUN_DEVICE_HOST && subject.table().kind < 63)
        << "its kind is " << subject.table().kind << ", which must be 1 to 62";
    std::int32_t again = 0;
    EXPECT_TRUE(subject.Count(&again).ok());
    EXPECT_EQ(again, count) << "the second time";
    const std::int32_t current = subject.Current();
    EXPECT_TRUE(current >= 0 && current < count) << "the current device is " << current << " of " << count;
  });
}

void DevicesAreDescribed(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    if (subject.table().describe == nullptr) GTEST_SKIP() << "the plugin describes nothing";
    for (const std::int32_t index : SomeOf(count)) {
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{5}, std::size_t{256}}) {
        SCOPED_TRACE("device " + std::to_string(index) + " in " + std::to_string(bytes) + " bytes");
        const GuardedMemory text("description", bytes);
        std::memset(text.data(), GuardedMemory::kGarbage, bytes);
        auto* const characters = reinterpret_cast<char*>(text.data());
        subject.Do("describe", [&](dtrun_error* error) {
          return subject.table().describe(subject.instance(), index, characters, bytes, error);
        });
        ASSERT_NE(std::memchr(characters, '\0', bytes), nullptr) << "it has no NUL";
        const std::string line = characters;
        EXPECT_TRUE(
            std::none_of(line.begin(), line.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }))
            << "it is more than a line: '" << line << "'";
        if (bytes == 256) {
          EXPECT_NE(line, "");
        }
      }
    }
    for (const std::int32_t index : {-1, count}) {
      char text[64] = {};
      const Outcome outcome = subject.Try("describe", [&](dtrun_error* error) {
        return subject.table().describe(subject.instance(), index, text, sizeof text, error);
      });
      EXPECT_EQ(outcome.code, DTRUN_INVALID_ARGUMENT) << "device " << index << " of " << count;
    }
  });
}

void TheThreadsDeviceStays(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    if (count == 1) GTEST_SKIP() << "there is one device, which is always the current one";
    const std::int32_t before = subject.Current();
    const std::int32_t other = before == 0 ? count - 1 : 0;
    const auto still = [&](const char* member) {
      EXPECT_EQ(subject.Current(), before)
          << "the thread's device after " << member << " on device " << other;
    };
    {
      const DeviceMemory memory(subject, other, kBytes);
      still("mem_alloc");
      const DeviceMemory host(subject, DeviceMemory::kHost, kBytes);
      still("mem_alloc of the host");
      subject.PlaceOf(memory.data());
      still("memory_of");
      DeviceStream stream(subject, other);
      still("stream_create");
      DeviceEvent event(subject, other);
      still("event_create");
      stream.Copy(memory, host);
      still("copy");
      event.Record(stream.get());
      still("event_record");
      event.HoldBack(stream.get());
      still("event_wait");
      event.Await();
      still("event_test");
      {
        Gate gate(subject);
        gate.Hold(stream);
        still("counter_wait");
      }
      std::int32_t captured = 0;
      if (subject.table().stream_capturing != nullptr) {
        subject.Do("stream_capturing", [&](dtrun_error* error) {
          return subject.table().stream_capturing(subject.instance(), &stream.get(), &captured, error);
        });
        still("stream_capturing");
      }
      event.Destroy();
      still("event_destroy");
      stream.Destroy();
      still("stream_destroy");
    }
    still("mem_free");
  });
}

// ---- memory

void MemoryKnowsItsDevice(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    const auto expect = [&](const void* pointer, std::int32_t kind, std::int32_t index, const char* what) {
      const dtrun_memory place = subject.PlaceOf(pointer);
      EXPECT_EQ(place.device_kind, kind) << what;
      EXPECT_EQ(place.device_index, index) << what;
    };
    for (const std::int32_t index : SomeOf(count)) {
      const DeviceMemory memory(subject, index, kBytes);
      const auto* const bytes = static_cast<const unsigned char*>(memory.data());
      expect(bytes, subject.table().kind, index, "memory of a device");
      expect(bytes + kBytes - 1, subject.table().kind, index, "the last byte of memory of a device");
    }
    const DeviceMemory host(subject, DeviceMemory::kHost, kBytes);
    expect(host.data(), DTRUN_DEVICE_HOST, -1, "memory that mem_alloc gave for the host");
    const std::vector<unsigned char> own(kBytes);
    expect(own.data(), DTRUN_DEVICE_HOST, -1, "memory of malloc");
    const int local = 0;
    expect(&local, DTRUN_DEVICE_HOST, -1, "a variable");
  });
}

void MemoryIsAlignedAndKeepsWhatIsWritten(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    for (const std::int32_t index : SomeOf(count)) {
      const DeviceStream stream(subject, index);
      for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{1} << 20}) {
        for (const std::uint64_t alignment : {64u, 256u}) {
          SCOPED_TRACE(std::to_string(bytes) + " bytes of device " + std::to_string(index) + ", aligned to " +
                       std::to_string(alignment));
          const DeviceMemory from(subject, DeviceMemory::kHost, bytes, alignment);
          const DeviceMemory to(subject, DeviceMemory::kHost, bytes, alignment);
          const DeviceMemory on_device(subject, index, bytes, alignment);
          for (const DeviceMemory* const memory : {&from, &to, &on_device})
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % alignment, 0u);
          Fill(from, 3);
          Fill(to, 4);
          stream.Copy(on_device, from);
          stream.Copy(to, on_device);
          stream.Finish();
          EXPECT_TRUE(Same(from, to)) << "what came back is not what was copied";
        }
      }
    }
  });
}

void MemoryThatIsNotThereIsRefused(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    static int untouched = 0;
    const auto outcome_of = [&](const dtrun_mem_params& params) {
      void* out = &untouched;
      const Outcome outcome = subject.Try("mem_alloc", [&](dtrun_error* error) {
        return subject.table().mem_alloc(subject.instance(), &params, &out, error);
      });
      EXPECT_FALSE(outcome.ok()) << "it gave what it cannot have";
      if (!outcome.ok()) {
        EXPECT_EQ(out, &untouched) << "it wrote to *out and failed";
      }
      return outcome.code;
    };
    constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 60;
    const std::int32_t kind = subject.table().kind;
    EXPECT_EQ(outcome_of(MemoryParams(kind, count, kBytes)), DTRUN_INVALID_ARGUMENT) << "device " << count;
    EXPECT_EQ(outcome_of(MemoryParams(kind, -1, kBytes)), DTRUN_INVALID_ARGUMENT) << "device -1";
    EXPECT_EQ(outcome_of(MemoryParams(kind == 61 ? 60 : 61, 0, kBytes)), DTRUN_UNSUPPORTED) << "another kind";
    EXPECT_EQ(outcome_of(MemoryParams(kind, 0, kTooMuch)), DTRUN_OUT_OF_MEMORY) << kTooMuch << " bytes";
    outcome_of(MemoryParams(DTRUN_DEVICE_HOST, -1, kTooMuch));
    for (const std::int32_t index : {count, -1}) {
      dtrun_stream_params params;
      DTRUN_INIT(params);
      params.device_index = index;
      dtrun_stream stream;
      DTRUN_INIT(stream);
      EXPECT_EQ(subject
                    .Try("stream_create",
                         [&](dtrun_error* error) {
                           return subject.table().stream_create(subject.instance(), &params, &stream, error);
                         })
                    .code,
                DTRUN_INVALID_ARGUMENT)
          << "a stream of device " << index;
      dtrun_event* event = nullptr;
      EXPECT_EQ(subject
                    .Try("event_create",
                         [&](dtrun_error* error) {
                           return subject.table().event_create(subject.instance(), index, &event, error);
                         })
                    .code,
                DTRUN_INVALID_ARGUMENT)
          << "an event of device " << index;
    }
    const DeviceMemory still_works(subject, 0, kBytes);
  });
}

// ---- structs, errors, threads

void DeviceStructsOfAnotherSizeFit(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t) {
    const dtrun_device& table = subject.table();
    const DeviceMemory memory(subject, 0, kBytes);
    for (const std::size_t bytes : Sizes<dtrun_memory>()) {
      dtrun_memory empty;
      DTRUN_INIT(empty);
      const Guarded<dtrun_memory> place("dtrun_memory", empty, bytes);
      EXPECT_EQ(table.memory_of(subject.instance(), memory.data(), place.get(), nullptr), DTRUN_OK);
      EXPECT_EQ(place.Damage(), "") << "a dtrun_memory of " << bytes << " bytes";
      EXPECT_EQ(place.Read().device_kind, table.kind);
    }
    for (const std::size_t bytes : {sizeof(dtrun_mem_params), sizeof(dtrun_mem_params) + 64}) {
      const Guarded<dtrun_mem_params> params("dtrun_mem_params", MemoryParams(table.kind, 0, kBytes), bytes);
      void* out = nullptr;
      ASSERT_EQ(table.mem_alloc(subject.instance(), params.get(), &out, nullptr), DTRUN_OK);
      table.mem_free(subject.instance(), params.get(), out);
      EXPECT_EQ(params.Writes(), "") << "a dtrun_mem_params of " << bytes << " bytes";
    }
    for (const std::size_t more : {std::size_t{0}, std::size_t{64}}) {
      dtrun_stream_params wanted;
      DTRUN_INIT(wanted);
      dtrun_stream empty;
      DTRUN_INIT(empty);
      const Guarded<dtrun_stream_params> params("dtrun_stream_params", wanted, sizeof wanted + more);
      const Guarded<dtrun_stream> stream("dtrun_stream", empty, sizeof empty + more);
      ASSERT_EQ(table.stream_create(subject.instance(), params.get(), stream.get(), nullptr), DTRUN_OK);
      EXPECT_EQ(params.Writes() + stream.Damage(), "") << "structs of " << more << " bytes more";
      const dtrun_stream made = stream.Read();
      EXPECT_EQ(made.device_kind, table.kind);
      EXPECT_EQ(table.copy(subject.instance(), memory.data(), memory.data(), 0, stream.get(), nullptr),
                DTRUN_OK);
      table.stream_destroy(subject.instance(), stream.get());
    }
  });
}

void StrangeFlagsAreRefused(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t) {
    const auto outcome_of = [&](std::uint32_t flags) {
      dtrun_mem_params params = MemoryParams(subject.table().kind, 0, kBytes);
      params.flags = flags;
      void* out = nullptr;
      const Outcome outcome = subject.Try("mem_alloc", [&](dtrun_error* error) {
        return subject.table().mem_alloc(subject.instance(), &params, &out, error);
      });
      if (outcome.ok()) subject.table().mem_free(subject.instance(), &params, out);
      return outcome.code;
    };
    EXPECT_EQ(outcome_of(1u << 30), DTRUN_UNSUPPORTED) << "with bit 30";
    EXPECT_EQ(outcome_of(1u << 14), DTRUN_OK) << "with bit 14";
    const DeviceEvent event(subject, 0);
    for (const auto& [flags, code] : {std::pair(1u << 30, DTRUN_UNSUPPORTED), {1u << 14, DTRUN_OK}}) {
      const int bit = code == DTRUN_OK ? 14 : 30;
      dtrun_stream_params params;
      DTRUN_INIT(params);
      params.flags = flags;
      dtrun_stream made;
      DTRUN_INIT(made);
      const Outcome created = subject.Try("stream_create", [&](dtrun_error* error) {
        return subject.table().stream_create(subject.instance(), &params, &made, error);
      });
      EXPECT_EQ(created.code, code) << "with bit " << bit << " in a dtrun_stream_params";
      if (created.ok()) subject.table().stream_destroy(subject.instance(), &made);
      const DeviceStream stream(subject, 0);
      dtrun_stream given = stream.get();
      given.flags = flags;
      const Outcome recorded = subject.Try("event_record", [&](dtrun_error* error) {
        return subject.table().event_record(subject.instance(), event.get(), &given, error);
      });
      EXPECT_EQ(recorded.code, code) << "with bit " << bit << " in a dtrun_stream";
    }
  });
}

void ErrorsOfAnotherSizeFit(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    for (const std::size_t bytes : Sizes<dtrun_error>()) {
      dtrun_error empty;
      DTRUN_ERROR_INIT(empty);
      const Guarded<dtrun_error> error("dtrun_error", empty, bytes);
      dtrun_event* event = nullptr;
      EXPECT_EQ(subject.table().event_create(subject.instance(), count, &event, error.get()),
                DTRUN_INVALID_ARGUMENT);
      EXPECT_EQ(error.Damage(), "") << "a dtrun_error of " << bytes << " bytes";
      EXPECT_NE(error.get()->message[0], '\0');
    }
  });
}

void ThreadsMayCallAtOnce(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    constexpr int kThreads = 4;
    constexpr int kRounds = 50;
    std::vector<std::string> problems(kThreads);
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        try {
          const std::int32_t index = number % count;
          for (int round = 0; round < kRounds; ++round) {
            const DeviceStream stream(subject, index);
            const DeviceMemory from(subject, DeviceMemory::kHost, kBytes);
            const DeviceMemory between(subject, index, kBytes);
            const DeviceMemory to(subject, DeviceMemory::kHost, kBytes);
            Fill(from, static_cast<unsigned char>(number + round));
            stream.Copy(between, from);
            stream.Copy(to, between);
            stream.Finish();
            if (!Same(from, to)) problems[static_cast<std::size_t>(number)] = "a wrong copy";
          }
        } catch (const std::exception& error) {
          problems[static_cast<std::size_t>(number)] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  });
}

}  // namespace

void AddDeviceCases(const BackendUnderTest& device) {
  AddCase("Devices", "AreCountedFromZero", "G1", device, [=] { DevicesAreCounted(device); });
  AddCase("Devices", "AreDescribedInALine", "G11", device, [=] { DevicesAreDescribed(device); });
  AddCase("Devices", "LeaveTheThreadsDeviceAlone", "G2", device, [=] { TheThreadsDeviceStays(device); });
  AddCase("Devices", "TakeStructsOfAnotherSize", "S2, S3", device,
          [=] { DeviceStructsOfAnotherSizeFit(device); });
  AddCase("Devices", "RefuseFlagsThatMustBeUnderstood", "S6", device,
          [=] { StrangeFlagsAreRefused(device); });
  AddCase("Devices", "FillErrorsOfAnotherSize", "E3, E4", device, [=] { ErrorsOfAnotherSizeFit(device); });
  AddCase("Devices", "MayBeUsedBySeveralThreads", "G13", device, [=] { ThreadsMayCallAtOnce(device); });
  AddCase("DeviceMemory", "KnowsItsDevice", "G4", device, [=] { MemoryKnowsItsDevice(device); });
  AddCase("DeviceMemory", "IsAlignedAndKeepsWhatIsWritten", "G5", device,
          [=] { MemoryIsAlignedAndKeepsWhatIsWritten(device); });
  AddCase("DeviceMemory", "ThatIsNotThereIsRefused", "G5, S14", device,
          [=] { MemoryThatIsNotThereIsRefused(device); });
}

}  // namespace dtrun::conformance
