// Staging over two wires: tests streams, which are particular to it; the suite of all backends covers the
// rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/subject.h"
#include "sdk/fake/accelerator.h"

namespace dtrun::conformance {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const BackendUnderTest kStaging = {
    .plugin = STAGING_PLUGIN_FILE,
    .options = {{"device", FAKE_DEVICE_FILE}, {"wire", STAGING_WIRE}},
    .skips = {
        {"Plugin.StartsNoThreadThatTakesSignals", "the fake device has threads of its own"},
        {"Plugin.NeedsNoMoreMemoryForEachCommunicator", "the fake device keeps the streams that have ended"},
        {"Sizes.AllreduceOfMoreThan2To31Elements", "the wire's own suite has it"},
        {"Sizes.BroadcastOfMoreThan2To31Elements", "the wire's own suite has it"},
        {"Messages.OfMoreThanTwoGibibytesArrive", "the wire's own suite has it"}}};

const bool kRegistered = RegisterBackendSuite(kStaging);

// A stream of one rank's device, and how a program uses it.
class OnStream {
 public:
  OnStream(const Subject& subject, const Rank& rank)
      : rank_(rank), table_(subject.table()), stream_(fake::make_stream(rank.rank() % fake::kDevices)) {}
  ~OnStream() {
    stream_->wait_on_host();
    for (dtrun_request* request : requests_) table_.req_release(request);
    fake::destroy_stream(stream_);
  }

  void Post(std::function<void()> task) { stream_->post(std::move(task)); }
  // Makes later work on the stream follow it.
  void Do(const dtrun_op& op) {
    Start(op);
    Order();
  }
  void Start(dtrun_op op) {
    if (op.kind != DTRUN_SEND && op.kind != DTRUN_RECV) op.sequence = ++sequence_;
    op.timeout_ns = kPatience.count();
    const dtrun_stream stream = Native();
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    dtrun_request* request = nullptr;
    ASSERT_EQ(table_.enqueue(rank_.raw(), &op, &stream, &request, &error), DTRUN_PENDING) << error.message;
    requests_.push_back(request);
  }
  // Makes later work on the stream follow all started operations.
  void Order() {
    const dtrun_stream stream = Native();
    for (; ordered_ < requests_.size(); ++ordered_) {
      dtrun_error error;
      DTRUN_ERROR_INIT(error);
      ASSERT_EQ(table_.req_wait_stream(requests_[ordered_], &stream, &error), DTRUN_OK) << error.message;
    }
  }
  void Finish() { stream_->wait_on_host(); }

 private:
  dtrun_stream Native() const {
    dtrun_stream stream;
    DTRUN_INIT(stream);
    stream.device_kind = DTRUN_DEVICE_OTHER;
    stream.device_index = rank_.rank() % fake::kDevices;
    stream.native = stream_;
    return stream;
  }

  const Rank& rank_;
  const dtrun_backend& table_;
  fake::Stream* const stream_;
  std::uint64_t sequence_ = 0;
  std::vector<dtrun_request*> requests_;
  std::size_t ordered_ = 0;
};

// Without any of the waits some seed gives a wrong sum: the buffer is written late, and read early.
TEST(Staging, IsOrderedWithTheWorkOnItsStream) {
  const Subject subject(kStaging);
  for (int seed = 1; seed <= 20; ++seed) {
    fake::set_delays({static_cast<std::uint64_t>(seed), 2000, 0});
    subject.Play(3, [&](Rank& rank) {
      constexpr std::size_t kCount = 1'100'001;  // two pieces
      std::vector<float> data(kCount), seen(kCount);
      {
        OnStream stream(subject, rank);
        for (int step = 1; step <= 3; ++step) {
          stream.Post([&, step] {
            std::fill(data.begin(), data.end(), static_cast<float>(step * (rank.rank() + 1)));
          });
          stream.Do(AllreduceOp(data.data(), data.data(), kCount, DTRUN_FLOAT32, DTRUN_SUM));
          stream.Post(
              [&] { std::transform(seen.begin(), seen.end(), data.begin(), seen.begin(), std::plus<>()); });
        }
        stream.Finish();
      }
      EXPECT_EQ(seen, std::vector<float>(kCount, 36)) << "seed " << seed;
    });
  }
  fake::set_delays({});
}

// A send and a receive of one group do not wait for each other, although both make the stream wait.
TEST(Staging, ExchangesMessagesOfAGroupOnOneStream) {
  const Subject subject(kStaging);
  subject.Play(2, [&](Rank& rank) {
    constexpr std::size_t kCount = 3'000'000;
    std::vector<float> mine(kCount, static_cast<float>(rank.rank())), theirs(kCount, -1);
    OnStream stream(subject, rank);
    ASSERT_TRUE(rank.GroupBegin().ok());
    stream.Start(SendOp(mine.data(), kCount, DTRUN_FLOAT32, 1 - rank.rank(), 7));
    stream.Start(RecvOp(theirs.data(), kCount, DTRUN_FLOAT32, 1 - rank.rank(), 7));
    ASSERT_TRUE(rank.GroupEnd().ok());
    stream.Order();
    stream.Finish();
    EXPECT_EQ(theirs, std::vector<float>(kCount, static_cast<float>(1 - rank.rank())));
  });
}

// Ordering a stream after a send waits only for the copy out: both ranks send first, on one stream.
TEST(Staging, LetsAStreamGoOnWhenTheBufferOfASendIsFree) {
  const Subject subject(kStaging);
  subject.Play(2, [&](Rank& rank) {
    constexpr std::size_t kCount = 3'000'000;
    std::vector<float> mine(kCount, static_cast<float>(rank.rank())), theirs(kCount, -1);
    OnStream stream(subject, rank);
    stream.Do(SendOp(mine.data(), kCount, DTRUN_FLOAT32, 1 - rank.rank(), 7));
    stream.Post([&] { std::fill(mine.begin(), mine.end(), 100.0f); });
    stream.Do(RecvOp(theirs.data(), kCount, DTRUN_FLOAT32, 1 - rank.rank(), 7));
    stream.Finish();
    EXPECT_EQ(theirs, std::vector<float>(kCount, static_cast<float>(1 - rank.rank())));
  });
}

// Drivers hold a lock in calls that wait for the whole device, such as a free, and map streams onto few
// queues. A stream that waited for the host, or for a copy that the device does not have yet, would deadlock:
// the thread that advances the operation could not issue the copy.
TEST(Staging, GoesOnBesideCallsThatWaitForTheDevice) {
  const Subject subject(kStaging);
  fake::set_delays({1, 0, 500});
  for (const int queues : {0, 1, 2}) {
    fake::set_driver({queues != 1, queues});
    subject.Play(3, [&](Rank& rank) {
      constexpr std::size_t kCount = 2'500'001;
      std::vector<float> data(kCount), seen(kCount);
      std::atomic<bool> done = false;
      std::thread frees([&] {
        while (!done) {
          fake::DriverCall(true);
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      });
      {
        OnStream stream(subject, rank), beside(subject, rank);
        for (int step = 1; step <= 3; ++step) {
          stream.Post([&, step] {
            std::fill(data.begin(), data.end(), static_cast<float>(step * (rank.rank() + 1)));
          });
          stream.Do(AllreduceOp(data.data(), data.data(), kCount, DTRUN_FLOAT32, DTRUN_SUM));
          fake::DriverCall(true);
          stream.Post(
              [&] { std::transform(seen.begin(), seen.end(), data.begin(), seen.begin(), std::plus<>()); });
        }
        stream.Finish();
        beside.Finish();
      }
      done = true;
      frees.join();
      EXPECT_EQ(seen, std::vector<float>(kCount, 36)) << queues << " queues";
    });
  }
  fake::set_driver({});
  fake::set_delays({});
  EXPECT_EQ(fake::deadlocks(), 0u);
}

// Its operations never start, and no call may wait for them.
TEST(Staging, AnAbortEndsTheOperationsOfAGroupThatIsOpen) {
  const Subject subject(kStaging);
  subject.Play(2, [&](Rank& rank) {
    float value = 1;
    OnStream stream(subject, rank);
    ASSERT_TRUE(rank.GroupBegin().ok());
    stream.Start(AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM));
    rank.Abort("the program has changed its mind");
  });
}

// Runs an allreduce of several pieces on three ranks; returns the piece size that each reports.
std::set<std::string> PiecesOfThree(const Subject& subject) {
  std::mutex mutex;
  std::set<std::string> pieces;
  subject.Play(3, [&](Rank& rank) {
    constexpr std::size_t kCount = 2'500'001;
    std::vector<float> data(kCount, static_cast<float>(rank.rank() + 1));
    OnStream stream(subject, rank);
    stream.Do(AllreduceOp(data.data(), data.data(), kCount, DTRUN_FLOAT32, DTRUN_SUM));
    stream.Finish();
    EXPECT_EQ(data, std::vector<float>(kCount, 6));
    std::vector<std::string> lines;
    while (lines.empty()) lines = rank.Snapshot();  // none while the communicator's thread is busy
    const std::string line = lines[0];
    const std::lock_guard lock(mutex);
    pieces.insert(line.substr(line.find("in pieces of ")));
  });
  return pieces;
}

// Ranks with different piece sizes would start different operations on the wire.
TEST(Staging, WithLittlePinnedMemoryAllRanksUseSmallerPieces) {
  const Subject subject(kStaging);
  EXPECT_THAT(PiecesOfThree(subject), ElementsAre("in pieces of 4096 KiB"));
  fake::limit_host_memory(9 << 20);  // two pieces of 4 MiB for each rank do not fit, and the counters do
  const std::set<std::string> pieces = PiecesOfThree(subject);
  fake::limit_host_memory(std::numeric_limits<std::uint64_t>::max());
  EXPECT_THAT(pieces, ElementsAre(Not("in pieces of 4096 KiB")));
}

// A sum of parts goes in one piece, larger than any host's memory.
TEST(Staging, WithoutMemoryOfTheHostFailsWithTheReason) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "because the sanitizer ends a process that asks for so much";
#endif
  const Subject subject(kStaging);
  subject.Play(2, [&](Rank& rank) {
    const std::vector<std::uint64_t> counts(2, std::uint64_t{1} << 60);
    float data = 0;
    dtrun_op op = AllreduceOp(&data, &data, 0, DTRUN_FLOAT32, 0);
    op.kind = DTRUN_ALLGATHERV;
    op.recv_counts = counts.data();
    const Outcome outcome = rank.Do(op);
    EXPECT_EQ(outcome.code, DTRUN_OUT_OF_MEMORY);
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("has no memory of the host for"), HasSubstr("use smaller operations")));
  });
}

}  // namespace
}  // namespace dtrun::conformance
