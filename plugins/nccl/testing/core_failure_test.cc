// The plugin under core: what ends a communicator, and whom the ranks name.
#include <atomic>

#include "core_test.h"

namespace dtrun::nccl_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// With what the agent of a host does: compares what the ranks call.
class NcclCompared : public NcclInCore {
 protected:
  NcclCompared() {
    for (int rank = 0; rank < kRanks; ++rank)
      recorders_.push_back(std::move(contract::Recorder::Open(mapping_.Path(), rank)).value());
  }
  // Plays ranks with different calls, and returns the text of the error.
  std::string PlayUntilTheyDiffer(const std::function<void(Member&)>& body) {
    std::optional<contract::Difference> difference;
    std::atomic<bool> over = false;
    std::thread agent([&] {
      contract::Checker checker(mapping_.recorder_memory());
      while (!(difference = checker.Check()) && !over) std::this_thread::sleep_for(milliseconds(1));
      if (difference) contract::RaiseAlarm(mapping_.recorder_memory(), *difference);
    });
    Play(body);
    over = true;
    agent.join();
    return difference ? difference->text : "";
  }

  contract::RecorderMapping mapping_ = std::move(contract::RecorderMapping::Create(kRanks)).value();
};

TEST_F(NcclCompared, NamesBothCallsOfRanksThatDiffer) {
  const std::string text = PlayUntilTheyDiffer([](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    std::vector<float> host(kCount, 1);
    self.On(stream, Member::Op(data.data, data.data));  // a rank that is late hears of the end in any call
    const Error error = self.rank == 0 ? self.OnHost(Member::Op(host.data(), host.data()))
                                       : self.On(stream, Member::Op(data.data, data.data));
    // The end of another rank may come first, and has the same text.
    const Error end = self.AwaitFailure();
    EXPECT_THAT(end.code, AnyOf(DTRUN_MISMATCH, DTRUN_ABORTED));
    EXPECT_THAT(end.text, HasSubstr("call 3 on 'world' differs"));
    EXPECT_THAT(error.code, AnyOf(end.code, self.rank == 0 ? end.code : DTRUN_OK)) << error.text;
    self.cuda.Synchronize(stream.native);
    self.cuda.Destroy(stream.native);
  });
  EXPECT_THAT(
      text, AllOf(HasSubstr("call 3 on 'world' differs: rank 0 calls allreduce"), HasSubstr("cuda memory")));
}

// Rank 0 sends from memory of one kind, rank 1 receives into the other, and rank 2 does nothing.
class NcclMixed : public NcclCompared, public ::testing::WithParamInterface<bool> {};

TEST_P(NcclMixed, NamesBothMemoriesOfAMessage) {
  const int on_device = GetParam() ? 0 : 1;
  const std::string text = PlayUntilTheyDiffer([&](Member& self) {
    const Status connected = self.comm.devices().Connect(DTRUN_DEVICE_CUDA, self.device);
    ASSERT_TRUE(connected) << connected.error().text;
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    std::vector<float> host(kCount, 1);
    if (self.rank < 2) {
      float* const memory = self.rank == on_device ? data.data : host.data();
      dtrun_op op =
          self.rank == 0 ? Member::Op(memory, nullptr, DTRUN_SEND) : Member::Op(nullptr, memory, DTRUN_RECV);
      op.peer = 1 - self.rank;
      self.rank == on_device ? self.On(stream, op) : self.OnHost(op);
    }
    const Error end = self.AwaitFailure();
    EXPECT_THAT(end.code, AnyOf(DTRUN_MISMATCH, DTRUN_ABORTED));
    EXPECT_THAT(end.text, HasSubstr("message 1 with tag 0 from rank 0 to rank 1 on 'world' differs"));
    self.cuda.Synchronize(stream.native);
    self.cuda.Destroy(stream.native);
  });
  EXPECT_THAT(
      text,
      HasSubstr(GetParam() ? "rank 0 sends memory of cuda, rank 1 receives into memory of the host; use"
                           : "rank 0 sends memory of the host, rank 1 receives into memory of cuda; use"));
}
INSTANTIATE_TEST_SUITE_P(FromTheDeviceAndFromTheHost, NcclMixed, ::testing::Bool());

TEST_F(NcclInCore, NamesTheRankThatDoesNotComeWhenTheTimeIsOver) {
  timeout_ = milliseconds(5000);
  std::atomic<int> failed = 0, timed_out = 0;
  Play([&](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
    if (self.rank != 2) {
      EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
      const Error error = self.AwaitFailure();
      timed_out += error.code == DTRUN_TIMEOUT ? 1 : 0;  // or it hears of the other's, which came first
      EXPECT_THAT(error.text, HasSubstr("no sign of rank 2 in it"));
      ++failed;
    }
    while (failed < 2) std::this_thread::sleep_for(milliseconds(1));
    self.cuda.Synchronize(stream.native);
    self.cuda.Destroy(stream.native);
  });
  EXPECT_GT(timed_out, 0);
}

TEST_F(NcclInCore, SaysThatTheDevicesHangWhereAllRanksCame) {
  timeout_ = milliseconds(5000);
  Play([&](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
    self.cuda.Synchronize(stream.native);
    std::vector<float> host(kCount);
    EXPECT_EQ(self.OnHost(Member::Op(host.data(), host.data())).text, "");  // all have come here
    FakeNccl().stuck = true;
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
    EXPECT_THAT(self.AwaitFailure().text,
                AllOf(HasSubstr("did not end within"), HasSubstr("devices or the network")));
    FakeNccl().stuck = false;
    self.cuda.Synchronize(stream.native);
    self.cuda.Destroy(stream.native);
  });
}

TEST_F(NcclInCore, EndsAllRanksWhenOneAborts) {
  Play([](Member& self) {
    const dtrun_stream stream = self.Stream();
    const Buffer data(self.cuda, 1);
    EXPECT_EQ(self.On(stream, Member::Op(data.data, data.data)).text, "");
    PluginError ignored;
    if (self.rank == 1) {
      EXPECT_EQ(self.comm.Abort("the loss is not a number", &ignored), DTRUN_OK) << ignored.message;
    } else {
      self.On(stream, Member::Op(data.data, data.data));  // or it has heard of it
    }
    const Error error = self.AwaitFailure();
    EXPECT_EQ(error.code, DTRUN_ABORTED);
    EXPECT_THAT(error.text, HasSubstr("the loss is not a number"));
    self.cuda.Synchronize(stream.native);
    self.cuda.Destroy(stream.native);
  });
}

}  // namespace
}  // namespace dtrun::nccl_test
