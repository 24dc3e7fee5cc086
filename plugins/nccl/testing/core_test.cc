// The plugin under core: order, checks, several communicators, memory, graphs.
#include "core_test.h"

#include <atomic>
#include <future>

namespace dtrun::nccl_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Whether the numbers are right of work on one stream that another reads; `ordered`: which waits for it.
bool StepsAreRight(const Member& self, bool ordered) {
  const dtrun_stream stream = self.Stream(), reader = self.Stream();
  const Buffer data(self.cuda, 0);
  std::vector<float> seen(3);
  for (int step = 1; step <= 3; ++step) {
    Post(stream.native,
         [&, step] { std::fill_n(data.data, kCount, static_cast<float>(step * (self.rank + 1))); });
    dtrun_work* work = nullptr;
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data), &work).text, "");
    PluginError error;
    EXPECT_EQ(self.comm.WaitOnStream(*work, ordered ? reader : stream, &error), DTRUN_OK) << error.message;
    self.comm.Release(work);
    Post(reader.native, [&, step] { seen[static_cast<std::size_t>(step - 1)] = data.data[kCount - 1]; });
    self.cuda.Synchronize(reader.native);
    self.cuda.Synchronize(stream.native);
  }
  self.cuda.Destroy(stream.native);
  self.cuda.Destroy(reader.native);
  return seen == std::vector<float>{6, 12, 18};
}

TEST_F(NcclInCore, IsOrderedWithStreamsAtEverySeedAndAWaitThatIsMissingShows) {
  FakeCuda().delay_us = 500;
  std::atomic<int> wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    FakeCuda().delay_seed = seed;
    Play([&](Member& self) {
      EXPECT_TRUE(StepsAreRight(self, true)) << "seed " << seed;
      wrong += StepsAreRight(self, false) ? 0 : 1;
    });
  }
  EXPECT_GT(wrong, 0) << "no seed shows that no call waits";
}

TEST_F(NcclInCore, CountsHostAndDeviceCallsInOneOrder) {
  Play([](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, static_cast<float>(self.rank + 1));
    std::vector<float> host(kCount, static_cast<float>(self.rank + 1));
    for (int step = 0; step < 3; ++step) {
      EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
      EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "");
    }
    self.cuda.Synchronize(stream.native);
    EXPECT_TRUE(data.Is(kSum * 9));
    EXPECT_EQ(host, std::vector<float>(kCount, kSum * 9));
    self.cuda.Destroy(stream.native);
  });
}

// torch looks for the thread's last error after each of its kernels, and takes what it finds for its own.
TEST_F(NcclInCore, LeavesNoErrorBehindThatItHasHandled) {
  auto* const last_error = Symbol<int()>(FAKE_CUDART_FILE, "cudaGetLastError");
  Play([&](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    std::promise<void> go;
    Post(stream.native, [gone = go.get_future().share()] { gone.wait(); });
    dtrun_work* work = nullptr;
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data), &work).text, "");
    PluginError error;
    std::int32_t done = 1;
    EXPECT_EQ(self.comm.Test(*work, &done, &error), DTRUN_OK) << error.message;
    EXPECT_EQ(done, 0);
    EXPECT_EQ(last_error(), 0) << "after a look at an operation that runs";
    go.set_value();
    EXPECT_EQ(self.comm.Wait(*work, -1, &error), DTRUN_OK) << error.message;
    EXPECT_EQ(last_error(), 0) << "after a wait";
    self.comm.Release(work);
    self.cuda.Destroy(stream.native);
  });
}

// The plugin takes what it is given; these are core's checks, by the device plugin.
TEST_F(NcclInCore, IsGivenNoBufferAndNoStreamThatIsNotTheDevices) {
  Play([](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    std::vector<float> host(kCount);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
    const Error on_host = self.On(stream, Member::Op(data.data, host.data()));
    EXPECT_EQ(on_host.code, DTRUN_INVALID_ARGUMENT);
    EXPECT_THAT(on_host.text, AllOf(HasSubstr("the recv buffer"), HasSubstr("is host memory")));
    self.cuda.Use((self.device + 1) % kRanks);
    const Buffer other(self.cuda, 1);
    self.cuda.Use(self.device);
    EXPECT_THAT(self.On(stream, Member::Op(other.data, data.data)).text,
                AllOf(HasSubstr("the send buffer"), HasSubstr("all of one operation is on one device")));
    dtrun_stream wrong = stream;
    wrong.device_index = (self.device + 1) % kRanks;
    EXPECT_THAT(self.On(wrong, Member::Op(data.data, data.data)).text, HasSubstr("is connected to cuda"));
    EXPECT_THAT(self.OnHost(Member::Op(data.data, data.data)).text,
                HasSubstr("give the call a stream of it"));
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "") << "nothing of it has failed";
    self.cuda.Synchronize(stream.native);
    self.cuda.Destroy(stream.native);
  });
}

TEST_F(NcclInCore, KeepsTheOrderOfCallsOnSeveralStreams) {
  FakeCuda().delay_us = 300;
  Play([](Member& self) {
    const dtrun_stream streams[] = {self.Stream(), self.Stream()};
    const Buffer one(self.cuda, 1), two(self.cuda, 2);
    for (int step = 0; step < 10; ++step) {
      const bool first = (step % 3 != 0);  // in turns that are not even
      EXPECT_EQ(self.On(streams[first ? 0 : 1],
                        Member::Op(first ? one.data : two.data, first ? one.data : two.data))
                    .text,
                "");
    }
    for (const dtrun_stream& stream : streams) {
      self.cuda.Synchronize(stream.native);
      self.cuda.Destroy(stream.native);
    }
    EXPECT_TRUE(one.Is(729));     // 3^6
    EXPECT_TRUE(two.Is(2 * 81));  // 2 * 3^4
  });
}

TEST_F(NcclInCore, MakesACommunicatorOfNcclForEachPartAtItsFirstUse) {
  Play(
      [](Member& self) {
        const dtrun_stream stream = self.Stream();
        const Buffer data(self.cuda, 1), part(self.cuda, 1);
        // Communicators of NCCL when all ranks have come here, and until they have looked.
        const auto communicators = [&] {
          std::vector<float> host(kCount);
          EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "");
          const int count = FakeNccl().comms;
          EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "");
          return count;
        };
        EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
        const auto split = self.family.Split(self.comm, self.rank == 2 ? -1 : 0, 1 - self.rank);
        ASSERT_TRUE(split.ok()) << split.error().text;
        EXPECT_EQ(*split == nullptr, self.rank == 2);
        EXPECT_EQ(communicators(), 3);
        if (*split != nullptr) {
          EXPECT_EQ(self.On(stream, Member::Op(part.data, part.data), nullptr, *split).text, "");
          const std::int32_t both[] = {0, 1};
          const auto subset = self.family.Subset(self.comm, both);
          ASSERT_TRUE(subset.ok()) << subset.error().text;
          EXPECT_EQ(self.On(stream, Member::Op(part.data, part.data), nullptr, *subset).text, "");
        }
        self.cuda.Synchronize(stream.native);
        EXPECT_EQ(communicators(), 7) << "three, two for the split and two for the subset";
        EXPECT_TRUE(part.Is(self.rank == 2 ? 1 : 4));
        EXPECT_TRUE(data.Is(3));
        self.family.Free(*split);
        self.cuda.Destroy(stream.native);
      },
      false);
  EXPECT_EQ(FakeNccl().comms, 0);
}

TEST_F(NcclInCore, GivesStreamsTheirPriorityAndMemoryOfNccl) {
  Play([](Member& self) {
    const Status connected = self.comm.devices().Connect(DTRUN_DEVICE_CUDA, self.device);
    ASSERT_TRUE(connected) << connected.error().text;
    dtrun_stream_params params;
    DTRUN_INIT(params);
    params.device_index = self.device;
    params.priority = 1;
    const Result<dtrun_stream> made = self.comm.devices().CreateStream(params, DTRUN_DEVICE_CUDA);
    ASSERT_TRUE(made) << made.error().text;
    const dtrun_stream urgent = *made;
    std::vector<float> host(kCount);
    EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "");  // all have made theirs
    EXPECT_EQ(FakeCuda().last_priority, -5);
    EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "");  // and have looked
    const Result<void*> memory = self.comm.memory().AllocateOn(kBytes, DTRUN_DEVICE_CUDA, self.device);
    ASSERT_TRUE(memory) << memory.error().text;
    EXPECT_GT(FakeNccl().registrations, 0);
    auto* const data = static_cast<float*>(*memory);
    std::fill_n(data, kCount, 1.0F);
    EXPECT_EQ(self.On(urgent, Member::Op(data, data)).text, "");
    self.cuda.Synchronize(urgent.native);
    EXPECT_EQ(data[kCount - 1], static_cast<float>(kRanks));
    self.comm.memory().Free(*memory);
    self.comm.devices().DestroyStream(urgent);
  });
  EXPECT_EQ(FakeNccl().blocks, 0);
  EXPECT_EQ(FakeNccl().registrations, 0);
}

TEST_F(NcclInCore, IsCapturedIntoAGraphAsOneCall) {
  Play([](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 0), sum(self.cuda, 0);
    std::vector<float> host(kCount, 1);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, sum.data)).text, "");
    self.cuda.BeginCapture(stream.native);
    dtrun_work* work = nullptr;
    EXPECT_EQ(self.On(stream, Member::Op(data.data, sum.data), &work).code, DTRUN_INVALID_ARGUMENT);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data, DTRUN_ALLTOALL)).code, DTRUN_UNSUPPORTED);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, sum.data)).text, "");
    const auto graph = self.cuda.EndCapture(stream.native);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "") << "while the graph is there";
    for (int step = 1; step <= 3; ++step) {
      Post(stream.native,
           [&, step] { std::fill_n(data.data, kCount, static_cast<float>(step * (self.rank + 1))); });
      graph->Launch(stream.native);
      self.cuda.Synchronize(stream.native);
      EXPECT_TRUE(sum.Is(static_cast<float>(step) * kSum));
    }
    self.cuda.Destroy(stream.native);
  });
}

}  // namespace
}  // namespace dtrun::nccl_test
