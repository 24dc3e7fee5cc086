// The device plugin over the fake libraries: what CUDA is asked for, and what goes wrong there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "dtrun/plugin.hpp"
#include "fake.h"
#include "plugins/cuda/cuda_api.h"
#include "sdk/conformance/device_subject.h"

namespace dtrun::cuda_test {
namespace {

using conformance::DeviceEvent;
using conformance::DeviceMemory;
using conformance::DeviceStream;
using conformance::DeviceSubject;
using conformance::Gate;
using conformance::MemoryParams;
using conformance::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaPlugin : public ::testing::Test {
 protected:
  // How `call` of a member ends.
  Outcome Try(const DeviceSubject::Call& call) const { return subject_.Try("a member", call); }
  Outcome Alloc(std::int32_t kind, std::int32_t index, std::uint64_t bytes,
                std::uint64_t alignment = 64) const {
    const dtrun_mem_params params = MemoryParams(kind, index, bytes, alignment);
    void* out = nullptr;
    const Outcome outcome = Try([&](dtrun_error* error) {
      return subject_.table().mem_alloc(subject_.instance(), &params, &out, error);
    });
    if (outcome.ok()) subject_.table().mem_free(subject_.instance(), &params, out);
    return outcome;
  }
  Outcome Count() const {
    std::int32_t count = 0;
    return subject_.Count(&count);
  }
  std::string Described(std::int32_t index) const {
    char text[128] = {};
    subject_.Do("describe", [&](dtrun_error* error) {
      return subject_.table().describe(subject_.instance(), index, text, sizeof text, error);
    });
    return text;
  }

  const Fake fake_;
  const DeviceSubject subject_{{.plugin = CUDA_PLUGIN_FILE}};
};

TEST_F(CudaPlugin, DescribesByNameAddressAndDriver) {
  EXPECT_EQ(Described(1), "Fake GPU 1, 0000:02:00.0, driver for CUDA 13.0");
}

TEST_F(CudaPlugin, SaysWhyThereIsNoDevice) {
  fake_->device_count = 0;
  const Outcome none = Count();
  EXPECT_EQ(none.code, DTRUN_FAILED_PRECONDITION);
  EXPECT_THAT(none.text,
              AllOf(HasSubstr("this process has no CUDA device: 'no CUDA-capable device is detected'"),
                    HasSubstr("check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES")));
  fake_->device_error = 35;
  fake_->driver_version = 12020;
  EXPECT_THAT(Count().text, AllOf(HasSubstr("CUDA driver version is insufficient"),
                                  HasSubstr("the driver is for CUDA 12.2"),
                                  HasSubstr(std::string("'") + FAKE_CUDART_FILE + "' is CUDA 13.0")));
  fake_->driver_version = 0;
  EXPECT_THAT(Count().text, HasSubstr("runtime version', because no driver is loaded; check"));
}

TEST_F(CudaPlugin, RefusesADeviceThatIsNotThere) {
  const Outcome outcome = Alloc(DTRUN_DEVICE_CUDA, 5, 64);
  EXPECT_EQ(outcome.code, DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.text,
            "there is no CUDA device 5: this process has 2, counted from 0; check the index and "
            "CUDA_VISIBLE_DEVICES");
  dtrun_stream stream;
  DTRUN_INIT(stream);
  stream.device_kind = DTRUN_DEVICE_ROCM;
  EXPECT_EQ(Try([&](dtrun_error* error) {
              return subject_.table().copy(subject_.instance(), &stream, &stream, 1, &stream, error);
            }).code,
            DTRUN_INVALID_ARGUMENT);
}

TEST_F(CudaPlugin, SaysWhoseMemoryIsShort) {
  fake_->device_bytes_left = 1000;
  fake_->host_bytes_left = 1000;
  EXPECT_TRUE(Alloc(DTRUN_DEVICE_CUDA, 1, 1000).ok());
  const Outcome device = Alloc(DTRUN_DEVICE_CUDA, 1, 4096);
  EXPECT_EQ(device.code, DTRUN_OUT_OF_MEMORY);
  EXPECT_EQ(device.text,
            "cuda cannot allocate 4096 bytes of device 1: 'out of memory'; nvidia-smi shows which processes "
            "use its memory");
  const Outcome host = Alloc(DTRUN_DEVICE_HOST, -1, 4096);
  EXPECT_EQ(host.code, DTRUN_OUT_OF_MEMORY);
  EXPECT_THAT(host.text, HasSubstr("4096 bytes of the host as pinned memory"));
  EXPECT_TRUE(Alloc(DTRUN_DEVICE_HOST, -1, 1000).ok()) << "what was freed can be had again";
}

TEST_F(CudaPlugin, GivesNoMemoryThatIsNotAligned) {
  EXPECT_EQ(Alloc(DTRUN_DEVICE_CUDA, 0, 64, std::uint64_t{1} << 40).code, DTRUN_UNSUPPORTED);
}

TEST_F(CudaPlugin, KnowsMemoryThatCudaMoves) {
  const int managed = 0;
  {
    const std::lock_guard lock(fake_->mutex);
    fake_->managed_memory.insert(&managed);
  }
  EXPECT_EQ(subject_.PlaceOf(&managed).device_kind, DTRUN_DEVICE_CUDA);
  EXPECT_EQ(subject_.PlaceOf(&managed).device_index, -1);
}

TEST_F(CudaPlugin, MakesStreamsOfBothPriorities) {
  const DeviceStream usual(subject_, 0, 0);
  EXPECT_EQ(fake_->last_priority, 0);
  const DeviceStream urgent(subject_, 1, 1);
  EXPECT_EQ(fake_->last_priority, -5);
  dtrun_stream_params params;
  DTRUN_INIT(params);
  params.priority = 2;
  dtrun_stream stream;
  DTRUN_INIT(stream);
  EXPECT_EQ(Try([&](dtrun_error* error) {
              return subject_.table().stream_create(subject_.instance(), &params, &stream, error);
            }).code,
            DTRUN_UNSUPPORTED);
}

TEST_F(CudaPlugin, TellsThatAStreamIsCaptured) {
  const DeviceStream stream(subject_, 0);
  const auto captured = [&] {
    std::int32_t out = -1;
    subject_.Do("stream_capturing", [&](dtrun_error* error) {
      return subject_.table().stream_capturing(subject_.instance(), &stream.get(), &out, error);
    });
    return out;
  };
  EXPECT_EQ(captured(), 0);
  {
    const std::lock_guard lock(fake_->mutex);
    fake_->capturing.insert(stream.get().native);
  }
  EXPECT_EQ(captured(), 1);
}

TEST_F(CudaPlugin, UsesTheDefaultStreamOfTheStreamsDevice) {
  dtrun_stream stream;
  DTRUN_INIT(stream);
  stream.device_kind = DTRUN_DEVICE_CUDA;
  stream.device_index = 1;
  const DeviceEvent event(subject_, 1);
  event.Record(stream);  // CUDA refuses an event of another device
  event.Await();
  EXPECT_EQ(subject_.Current(), 0);
}

TEST_F(CudaPlugin, RecordsNoEventOfAnotherDevice) {
  const DeviceStream stream(subject_, 0);
  const DeviceEvent event(subject_, 1);
  const Outcome outcome = Try([&](dtrun_error* error) {
    return subject_.table().event_record(subject_.instance(), event.get(), &stream.get(), error);
  });
  EXPECT_EQ(outcome.code, DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.text, "an event of device 1 cannot be recorded on a stream of device 0");
}

TEST_F(CudaPlugin, ReportsWhatTheDeviceReports) {
  const DeviceEvent event(subject_, 0);
  fake_->event_error = 700;
  const Outcome outcome = Try([&](dtrun_error* error) {
    return subject_.table().event_test(subject_.instance(), event.get(), error);
  });
  EXPECT_EQ(outcome.code, DTRUN_VENDOR);
  EXPECT_THAT(outcome.text, HasSubstr("'an illegal memory access was encountered' (error 700)"));
}

TEST_F(CudaPlugin, WaitsForCountersOfItsOwnHostMemoryOnly) {
  const DeviceStream stream(subject_, 0);
  const auto wait = [&](const void* counter) {
    return Try([&](dtrun_error* error) {
      return subject_.table().counter_wait(subject_.instance(), static_cast<const std::uint32_t*>(counter), 0,
                                           &stream.get(), error);
    });
  };
  const std::uint32_t own = 0;
  EXPECT_THAT(wait(&own).text, HasSubstr("must be in memory that mem_alloc gave for the host"));
  const DeviceMemory memory(subject_, DeviceMemory::kHost, 64);
  *static_cast<std::uint32_t*>(memory.data()) = 0;
  EXPECT_TRUE(wait(memory.data()).ok());
  stream.Finish();
  fake_->wait_value_error = 801;
  EXPECT_EQ(wait(memory.data()).code, DTRUN_UNSUPPORTED);
  EXPECT_THAT(wait(memory.data()).text, HasSubstr("'operation not supported' (error 801)"));
}

TEST_F(CudaPlugin, LeavesNothingBehind) {
  const int streams = fake_->streams;
  const int events = fake_->events;
  {
    const DeviceStream stream(subject_, 0);
    const DeviceEvent event(subject_, 0);
    EXPECT_EQ(fake_->streams, streams + 1);
    EXPECT_EQ(fake_->events, events + 1);
  }
  EXPECT_EQ(fake_->streams, streams);
  EXPECT_EQ(fake_->events, events);
  EXPECT_EQ(fake_->host_waits, 0) << "calls that waited for the device";
}

// A chain over three streams; `ordered`: each waits for the one before it. Whether the numbers are right.
bool ChainIsRight(const DeviceSubject& subject, bool ordered) {
  constexpr int kLinks = 3;
  const DeviceMemory from(subject, DeviceMemory::kHost, 256);
  const DeviceMemory to(subject, DeviceMemory::kHost, 256);
  std::memset(from.data(), 1, 256);
  std::memset(to.data(), 2, 256);
  std::vector<std::unique_ptr<DeviceMemory>> buffers;
  std::vector<std::unique_ptr<DeviceStream>> streams;
  std::vector<std::unique_ptr<DeviceEvent>> events;
  for (int i = 0; i < kLinks; ++i) {
    buffers.push_back(std::make_unique<DeviceMemory>(subject, i % 2, 256));
    streams.push_back(std::make_unique<DeviceStream>(subject, i % 2));
    events.push_back(std::make_unique<DeviceEvent>(subject, i % 2));
  }
  const void* source = from.data();
  for (std::size_t i = 0; i < kLinks; ++i) {
    if (ordered && i > 0) events[i - 1]->HoldBack(streams[i]->get());
    streams[i]->Copy(buffers[i]->data(), source, 256);
    if (i + 1 == kLinks) streams[i]->Copy(to.data(), buffers[i]->data(), 256);
    events[i]->Record(streams[i]->get());
    source = buffers[i]->data();
  }
  for (const auto& stream : streams) stream->Finish();
  return std::memcmp(from.data(), to.data(), 256) == 0;
}

TEST_F(CudaPlugin, OverDelayedStreamsShowsAWaitThatIsMissing) {
  fake_->delay_us = 400;
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    fake_->delay_seed = seed;
    EXPECT_TRUE(ChainIsRight(subject_, true)) << "seed " << seed;
    wrong += ChainIsRight(subject_, false) ? 0 : 1;
  }
  EXPECT_GT(wrong, 0) << "no seed of 50 shows that no call waits";
}

TEST(CudaDriver, WithoutTheWaitSaysWhy) {
  Fake::Load();
  const auto refusal = [](const cuda::CudaDriver& driver) {
    try {
      driver.WaitValue(nullptr, 0, 1);
    } catch (const sdk::Failure& failure) {
      return std::to_string(failure.code()) + ": " + failure.what();
    }
    return std::string("it waits");
  };
  const std::string unsupported = std::to_string(DTRUN_UNSUPPORTED) + ": ";
  EXPECT_THAT(refusal(cuda::CudaDriver("libcuda-nowhere.so.1")),
              AllOf(HasSubstr(unsupported), HasSubstr("libcuda-nowhere.so.1")));
  EXPECT_THAT(refusal(cuda::CudaDriver(FAKE_CUDART_FILE)),
              AllOf(HasSubstr(unsupported), HasSubstr("has no 'cuStreamWaitValue32_v2'"),
                    HasSubstr("upgrade the driver")));
}

}  // namespace
}  // namespace dtrun::cuda_test
