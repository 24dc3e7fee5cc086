// What streams of every device plugin must do: keep their order, wait for events and counters and for nothing
// else, and hold up no call.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "device_case.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

using Under = BackendUnderTest;

// Long enough for work that nothing holds back to have run on most tries; the case passes whether it has or
// not.
constexpr std::chrono::milliseconds kMoment{20};
constexpr const char* kNoCounters =
    "the device cannot wait for a counter here, so that nothing holds a stream back";

// Whether `call` returns within kPatience; `release` makes one that waits return, after that.
bool Returns(const std::function<void()>& call, const std::function<void()>& release) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::string thrown;
  std::thread caller([&] {
    try {
      call();
    } catch (const std::exception& error) {
      thrown = error.what();
    }
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  bool in_time = false;
  {
    std::unique_lock lock(mutex);
    in_time = changed.wait_for(lock, kPatience, [&] { return done; });
  }
  if (!in_time) release();
  caller.join();
  EXPECT_EQ(thrown, "");
  return in_time;
}

// ---- streams

void StreamsKeepTheirOrder(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    for (const std::int32_t index : SomeOf(count)) {
      for (const std::int32_t priority : {0, 1}) {
        SCOPED_TRACE("device " + std::to_string(index) + ", priority " + std::to_string(priority));
        const DeviceMemory first(subject, DeviceMemory::kHost, kBytes);
        const DeviceMemory second(subject, DeviceMemory::kHost, kBytes);
        const DeviceMemory to(subject, DeviceMemory::kHost, kBytes);
        const DeviceMemory one(subject, index, kBytes);
        const DeviceMemory other(subject, index, kBytes);
        const DeviceStream stream(subject, index, priority);
        Fill(first, 1);
        Fill(second, 2);
        Fill(to, 3);
        Gate gate(subject);
        if (!gate.Hold(stream)) GTEST_SKIP() << kNoCounters;
        stream.Copy(one, first);
        stream.Copy(other, one);
        stream.Copy(to, other);
        const DeviceEvent between(subject, index);
        between.Record(stream.get());
        stream.Copy(one, second);
        std::this_thread::sleep_for(kMoment);
        EXPECT_FALSE(between.Reached()) << "it has reached an event behind work that is held back";
        EXPECT_FALSE(Same(to, first)) << "a copy ran before the stream's earlier work had ended";
        gate.Open();
        between.Await();
        EXPECT_TRUE(Same(to, first)) << "a copy took what was there before the stream's earlier copy";
        stream.Copy(to, one);
        stream.Finish();
        EXPECT_TRUE(Same(to, second)) << "after the last copy";
      }
    }
  });
}

void StreamsDoNotWaitForOneAnother(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    for (const std::int32_t index : SomeOf(count)) {
      const DeviceMemory from(subject, DeviceMemory::kHost, kBytes);
      const DeviceMemory to(subject, DeviceMemory::kHost, kBytes);
      const DeviceStream held(subject, 0);
      const DeviceStream free(subject, index);
      Fill(from, 5);
      Gate gate(subject);
      if (!gate.Hold(held)) GTEST_SKIP() << kNoCounters;
      free.Copy(to, from);
      free.Finish();
      EXPECT_TRUE(Same(from, to));
    }
  });
}

void CallsDoNotWait(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t) {
    const DeviceMemory host(subject, DeviceMemory::kHost, kBytes);
    const DeviceMemory memory(subject, 0, kBytes);
    const DeviceStream stream(subject, 0);
    const DeviceStream other(subject, 0);
    const DeviceEvent event(subject, 0);
    Gate gate(subject);
    bool held = true;
    const auto open = [&] { gate.Open(); };
    EXPECT_TRUE(Returns([&] { held = gate.Hold(stream) && gate.Hold(stream, 2); }, open))
        << "counter_wait waits";
    if (!held) GTEST_SKIP() << kNoCounters;
    EXPECT_TRUE(Returns([&] { stream.Copy(memory, host); }, open)) << "copy waits for the stream";
    EXPECT_TRUE(Returns([&] { event.Record(stream.get()); }, open)) << "event_record waits for the stream";
    EXPECT_TRUE(Returns([&] { event.Reached(); }, open)) << "event_test waits for the stream";
    EXPECT_TRUE(Returns([&] { event.HoldBack(other.get()); }, open)) << "event_wait waits for the event";
    EXPECT_TRUE(Returns([&] { subject.PlaceOf(memory.data()); }, open)) << "memory_of waits for a stream";
    EXPECT_TRUE(Returns(
        [&] {
          const DeviceStream another(subject, 0);
          const DeviceEvent one(subject, 0);
          one.Record(another.get());
          one.Await();
        },
        open))
        << "making a stream and an event waits for another stream";
  });
}

void DestroyingWaitsForNothing(const Under& under_test) {
  WithDevices(under_test,
              [](const DeviceSubject& subject, std::int32_t) {
                const DeviceMemory from(subject, DeviceMemory::kHost, kBytes);
                const DeviceMemory to(subject, DeviceMemory::kHost, kBytes);
                const DeviceMemory copied(subject, DeviceMemory::kHost, kBytes);
                Fill(from, 6);
                Fill(to, 7);
                Fill(copied, 8);
                DeviceStream stream(subject, 0);
                const DeviceStream other(subject, 0);
                const DeviceEvent last(subject, 0);
                Gate gate(subject);
                if (!gate.Hold(stream)) GTEST_SKIP() << kNoCounters;
                stream.Copy(to, from);
                {
                  DeviceEvent forgotten(subject, 0);
                  forgotten.Record(stream.get());
                  forgotten.HoldBack(other.get());
                  EXPECT_TRUE(Returns([&] { forgotten.Destroy(); }, [&] { gate.Open(); }))
                      << "event_destroy waits for the event";
                }
                other.Copy(copied, to);
                last.Record(stream.get());
                EXPECT_TRUE(Returns([&] { stream.Destroy(); }, [&] { gate.Open(); }))
                    << "stream_destroy waits for the stream's work";
                std::this_thread::sleep_for(kMoment);
                EXPECT_FALSE(last.Reached())
                    << "the work of a stream that was destroyed was dropped, or is not held back";
                gate.Open();
                last.Await();
                EXPECT_TRUE(Same(from, to)) << "the work of a stream that was destroyed was dropped";
                other.Finish();
                EXPECT_TRUE(Same(from, copied))
                    << "a stream did not wait for an event that was destroyed since";
              });
}

void NothingIsCaptured(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    if (subject.table().stream_capturing == nullptr) GTEST_SKIP() << "the device captures no streams";
    for (const std::int32_t index : SomeOf(count)) {
      const DeviceStream stream(subject, index);
      std::int32_t captured = 7;
      subject.Do("stream_capturing", [&](dtrun_error* error) {
        return subject.table().stream_capturing(subject.instance(), &stream.get(), &captured, error);
      });
      EXPECT_EQ(captured, 0) << "of a stream that is not captured";
    }
  });
}

// ---- events and counters

void EventsHoldStreamsBack(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    for (const std::int32_t index : SomeOf(count)) {
      SCOPED_TRACE("a stream of device " + std::to_string(index) + " after one of device 0");
      const DeviceMemory from(subject, DeviceMemory::kHost, kBytes);
      const DeviceMemory between(subject, DeviceMemory::kHost, kBytes);
      const DeviceMemory to(subject, DeviceMemory::kHost, kBytes);
      Fill(from, 1);
      Fill(between, 2);
      Fill(to, 3);
      const DeviceStream first(subject, 0);
      const DeviceStream second(subject, index);
      const DeviceEvent event(subject, 0);
      EXPECT_TRUE(event.Reached()) << "an event that was never recorded";
      event.HoldBack(second.get());
      second.Finish();
      Gate gate(subject);
      if (!gate.Hold(first)) GTEST_SKIP() << kNoCounters;
      first.Copy(between, from);
      event.Record(first.get());
      event.HoldBack(second.get());
      second.Copy(to, between);
      std::this_thread::sleep_for(kMoment);
      EXPECT_FALSE(event.Reached()) << "before the stream reached it";
      gate.Open();
      second.Finish();
      EXPECT_TRUE(Same(from, to)) << "a stream did not wait for an event";
      EXPECT_TRUE(event.Reached()) << "after the stream reached it";
    }
  });
}

void EventsKeepTheirOldPlace(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t) {
    const DeviceMemory from(subject, DeviceMemory::kHost, kBytes);
    const DeviceMemory to(subject, DeviceMemory::kHost, kBytes);
    Fill(from, 9);
    const DeviceStream first(subject, 0);
    const DeviceStream second(subject, 0);
    const DeviceEvent event(subject, 0);
    Gate early(subject);
    Gate late(subject);
    if (!early.Hold(first)) GTEST_SKIP() << kNoCounters;
    event.Record(first.get());
    event.HoldBack(second.get());
    second.Copy(to, from);
    late.Hold(first);
    event.Record(first.get());
    early.Open();
    second.Finish();  // who waits for the first place does not wait for the second
    EXPECT_TRUE(Same(from, to));
    EXPECT_FALSE(event.Reached()) << "it was recorded again, and the stream has not reached the new place";
    late.Open();
    event.Await();
  });
}

void CountersRelease(const Under& under_test) {
  WithDevices(under_test, [](const DeviceSubject& subject, std::int32_t count) {
    for (const std::int32_t index : SomeOf(count)) {
      const DeviceStream stream(subject, index);
      const DeviceEvent five(subject, index);
      const DeviceEvent nine(subject, index);
      Gate gate(subject);
      if (!gate.Hold(stream, 5)) GTEST_SKIP() << kNoCounters;
      five.Record(stream.get());
      gate.Hold(stream, 9);
      nine.Record(stream.get());
      gate.Set(4);
      std::this_thread::sleep_for(kMoment);
      EXPECT_FALSE(five.Reached()) << "at 4, of a wait for 5";
      gate.Set(7);
      five.Await();
      std::this_thread::sleep_for(kMoment);
      EXPECT_FALSE(nine.Reached()) << "at 7, of a wait for 9";
      gate.Set(9);
      nine.Await();
      const DeviceEvent passed(subject, index);
      gate.Hold(stream, 3);
      passed.Record(stream.get());
      passed.Await();
    }
  });
}

}  // namespace

void AddStreamCases(const BackendUnderTest& device) {
  AddCase("Streams", "KeepTheOrderOfTheirWork", "G6", device, [=] { StreamsKeepTheirOrder(device); });
  AddCase("Streams", "DoNotWaitForOneAnother", "G6", device, [=] { StreamsDoNotWaitForOneAnother(device); });
  AddCase("Streams", "HoldUpNoCall", "G3", device, [=] { CallsDoNotWait(device); });
  AddCase("Streams", "EndWhenTheirWorkHasEnded", "G7, G9", device,
          [=] { DestroyingWaitsForNothing(device); });
  AddCase("Streams", "AreNotCapturedByThemselves", "G10", device, [=] { NothingIsCaptured(device); });
  AddCase("Events", "HoldStreamsBack", "G7", device, [=] { EventsHoldStreamsBack(device); });
  AddCase("Events", "KeepTheirOldPlaceForThoseThatWait", "G7", device,
          [=] { EventsKeepTheirOldPlace(device); });
  AddCase("Counters", "ReleaseAtTheirValueAndAbove", "G8", device, [=] { CountersRelease(device); });
}

}  // namespace dtrun::conformance
