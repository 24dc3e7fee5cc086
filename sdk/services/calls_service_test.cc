#include <gmock/gmock.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dtrun/plugin/call_queue.hpp"
#include "sdk/algorithms/trial.h"
#include "sdk/conformance/host.h"
#include "sdk/services/services.h"

namespace dtrun::services {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A transport in which operation 1 blocks until released; after abandon, further operations fail.
struct Transport {
  std::promise<void> go;
  std::shared_future<void> told = go.get_future().share();
  std::promise<void> begun;
  std::atomic<bool> abandoned{false};
  std::mutex mutex;
  std::vector<std::uint64_t> ran;
  std::vector<std::thread::id> threads;
  std::int64_t time_left = 0;
  std::uint64_t last_count = 0;

  void GoOn() {
    if (!abandoned.exchange(true)) go.set_value();
  }
};

dtrun_status RunOp(void* context, const dtrun_op* op, dtrun_error* err) {
  auto& transport = *static_cast<Transport*>(context);
  {
    const std::lock_guard lock(transport.mutex);
    transport.ran.push_back(op->sequence);
    transport.threads.push_back(std::this_thread::get_id());
    transport.time_left = op->timeout_ns;
    if (op->recv_counts != nullptr) transport.last_count = op->recv_counts[2];
  }
  if (op->sequence == 1) {
    transport.begun.set_value();
    transport.told.wait();
  }
  if (transport.abandoned) return dtrun_error_set(err, DTRUN_TIMEOUT, 2, "rank 2 was late");
  if (op->count == 14) throw std::runtime_error("boom");  // which a plugin may not
  return op->count == 13 ? 4711 : DTRUN_OK;
}

void AbandonOp(void* context, const dtrun_op*) { static_cast<Transport*>(context)->GoOn(); }

dtrun_op Barrier(std::uint64_t sequence, std::int64_t timeout_ns = -1) {
  dtrun_op op = algorithms::Op(DTRUN_BARRIER, nullptr, nullptr, 0);
  op.sequence = sequence;
  op.timeout_ns = timeout_ns;
  return op;
}

class CallsServiceTest : public testing::Test {
 protected:
  CallsServiceTest() {
    DTRUN_INIT(runner_);
    runner_.context = &transport_;
    runner_.run = &RunOp;
    runner_.abandon = &AbandonOp;
    DTRUN_ERROR_INIT(error_);
    EXPECT_EQ(service_->open(host_, &runner_, 3, "queue", &calls_, nullptr), DTRUN_OK);
  }
  ~CallsServiceTest() override { service_->close(host_, calls_); }

  dtrun_call* Enqueue(const dtrun_op& op) {
    dtrun_call* call = nullptr;
    EXPECT_EQ(service_->enqueue(host_, calls_, &op, &call, nullptr), DTRUN_PENDING);
    return call;
  }
  dtrun_status Wait(dtrun_call* call, std::int64_t timeout_ns = -1) {
    return service_->wait(host_, call, timeout_ns, &error_);
  }

  const dtrun_calls_service* const service_ = Calls();
  const dtrun_host* const host_ = conformance::Host();
  Transport transport_;
  dtrun_runner runner_;
  dtrun_calls* calls_ = nullptr;
  dtrun_error error_;
};

TEST_F(CallsServiceTest, RunsABlockingCallOnTheThreadThatWaits) {
  dtrun_op op = Barrier(2);
  op.flags = DTRUN_OP_BLOCKING;
  dtrun_call* const call = Enqueue(op);
  EXPECT_EQ(Wait(call), DTRUN_OK);
  EXPECT_EQ(service_->test(host_, call, &error_), DTRUN_OK);
  EXPECT_THAT(transport_.threads, ElementsAre(std::this_thread::get_id()));
  service_->release(host_, call);
}

TEST_F(CallsServiceTest, RunsOthersInOrderOnItsOwnThread) {
  dtrun_call* const first = Enqueue(Barrier(1));
  dtrun_call* const second = Enqueue(Barrier(2));
  transport_.begun.get_future().wait();
  EXPECT_EQ(service_->test(host_, first, &error_), DTRUN_PENDING);
  EXPECT_EQ(Wait(second, 0), DTRUN_PENDING);
  transport_.go.set_value();
  EXPECT_EQ(Wait(second), DTRUN_OK);
  EXPECT_EQ(Wait(first), DTRUN_OK);
  EXPECT_THAT(transport_.ran, ElementsAre(1, 2));
  EXPECT_NE(transport_.threads[0], std::this_thread::get_id());
  service_->release(host_, first);
  service_->release(host_, second);
}

TEST_F(CallsServiceTest, ReleaseWaitsForTheCall) {
  dtrun_call* const call = Enqueue(Barrier(2));
  service_->release(host_, call);
  EXPECT_THAT(transport_.ran, ElementsAre(2));
}

TEST_F(CallsServiceTest, AbandonsACallWhoseTimeIsOverBeforeItsTurn) {
  dtrun_call* const first = Enqueue(Barrier(1));
  dtrun_call* const second = Enqueue(Barrier(2, 1'000'000));
  EXPECT_EQ(Wait(second), DTRUN_TIMEOUT);  // returns only because abandon has ended the first
  EXPECT_STREQ(error_.message, "rank 2 was late");
  EXPECT_EQ(error_.peer, 2);
  EXPECT_EQ(Wait(first), DTRUN_TIMEOUT);
  EXPECT_EQ(Wait(first), DTRUN_TIMEOUT);  // on every wait
  service_->release(host_, first);
  service_->release(host_, second);
}

// The first call has no time limit, and no thread waits for the second.
TEST_F(CallsServiceTest, AbandonsACallThatNobodyLooksAt) {
  dtrun_call* const first = Enqueue(Barrier(1));
  dtrun_call* const second = Enqueue(Barrier(2, 1'000'000));
  EXPECT_EQ(transport_.told.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  transport_.GoOn();
  EXPECT_EQ(Wait(first), DTRUN_TIMEOUT);
  EXPECT_EQ(Wait(second), DTRUN_TIMEOUT);
  service_->release(host_, first);
  service_->release(host_, second);
}

// The first runs on the thread that waits for it; no thread waits for the second.
TEST_F(CallsServiceTest, AbandonsACallBehindOneOnItsCallersThread) {
  dtrun_op op = Barrier(1);
  op.flags = DTRUN_OP_BLOCKING;
  dtrun_call* const first = Enqueue(op);
  std::thread caller([&] { EXPECT_EQ(service_->wait(host_, first, -1, nullptr), DTRUN_TIMEOUT); });
  transport_.begun.get_future().wait();
  dtrun_call* const second = Enqueue(Barrier(2, 1'000'000));
  EXPECT_EQ(transport_.told.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  transport_.GoOn();
  caller.join();
  EXPECT_EQ(Wait(second), DTRUN_TIMEOUT);
  service_->release(host_, first);
  service_->release(host_, second);
}

// Calls behind a shorter one may also miss their limit.
TEST_F(CallsServiceTest, AbandonsTheCallWhoseTimeIsOverFirst) {
  constexpr std::int64_t kHour = std::int64_t{3'600'000'000'000};
  dtrun_call* const calls[] = {Enqueue(Barrier(1, kHour)), Enqueue(Barrier(2, 2 * kHour)),
                               Enqueue(Barrier(3, 1'000'000)), Enqueue(Barrier(4))};
  EXPECT_EQ(transport_.told.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  transport_.GoOn();
  for (dtrun_call* const call : calls) {
    EXPECT_EQ(Wait(call), DTRUN_TIMEOUT);
    service_->release(host_, call);
  }
}

// Threads with an impossible stack size cannot be started.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_init(&before_);
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST_F(CallsServiceTest, StartsNothingWhereNoThreadStarts) {
  dtrun_op blocking = Barrier(2);
  blocking.flags = DTRUN_OP_BLOCKING;
  dtrun_call* const first = Enqueue(blocking);
  {
    const NoThreads none;
    dtrun_call* untouched = nullptr;
    const dtrun_op op = Barrier(3);
    EXPECT_EQ(service_->enqueue(host_, calls_, &op, &untouched, &error_), DTRUN_SYSTEM);
    EXPECT_THAT(error_.message, HasSubstr("cannot start the thread 'queue'"));
    EXPECT_EQ(untouched, nullptr);
    EXPECT_EQ(service_->test(host_, first, &error_), DTRUN_PENDING);
    EXPECT_EQ(Wait(first), DTRUN_OK);  // on this thread
  }
  dtrun_call* const later = Enqueue(Barrier(3));
  EXPECT_EQ(Wait(later), DTRUN_OK);
  EXPECT_THAT(transport_.ran, ElementsAre(2, 3));
  service_->release(host_, first);
  service_->release(host_, later);
}

TEST_F(CallsServiceTest, TellsTheRunnerWhatIsLeftOfTheTime) {
  constexpr std::int64_t kHour = std::int64_t{3'600'000'000'000};
  dtrun_call* const call = Enqueue(Barrier(2, kHour));
  EXPECT_EQ(Wait(call), DTRUN_OK);
  EXPECT_GT(transport_.time_left, 0);
  EXPECT_LE(transport_.time_left, kHour);
  service_->release(host_, call);
}

TEST_F(CallsServiceTest, TakesAnUnknownStatusAndAnExceptionForDefects) {
  for (const auto& [count, text] :
       {std::pair(13, "returned status 4711"), {14, "threw an exception, which no plugin may: boom"}}) {
    dtrun_op op = Barrier(2);
    op.count = static_cast<std::uint64_t>(count);
    dtrun_call* const call = Enqueue(op);
    EXPECT_EQ(Wait(call), DTRUN_INTERNAL);
    EXPECT_THAT(error_.message, HasSubstr(std::string("dtrun_runner.run ") + text));
    service_->release(host_, call);
  }
}

TEST_F(CallsServiceTest, KeepsTheArraysOfAnOperation) {
  dtrun_call* call = nullptr;
  {
    std::uint64_t counts[] = {1, 2, 3};
    dtrun_op op = Barrier(2);
    op.kind = DTRUN_ALLGATHERV;
    op.dtype = DTRUN_INT32;
    op.recv_counts = counts;
    op.flags = DTRUN_OP_BLOCKING;  // runs when it is waited for
    call = Enqueue(op);
    counts[2] = 0;
  }
  EXPECT_EQ(Wait(call), DTRUN_OK);
  EXPECT_EQ(transport_.last_count, 3u);
  service_->release(host_, call);
}

TEST_F(CallsServiceTest, SaysWhatIsWrongWithACall) {
  dtrun_call* call = nullptr;
  dtrun_op op = Barrier(1);
  op.kind = DTRUN_RECV;
  EXPECT_EQ(service_->enqueue(host_, calls_, &op, &call, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("recv (kind 7) is no collective"));
  EXPECT_EQ(service_->enqueue(host_, calls_, nullptr, &call, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->enqueue(host_, nullptr, &op, &call, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->wait(host_, nullptr, 0, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(call, nullptr);
  service_->release(host_, nullptr);
  service_->close(host_, nullptr);
}

TEST_F(CallsServiceTest, OpensNothingIncomplete) {
  dtrun_calls* calls = nullptr;
  EXPECT_EQ(service_->open(nullptr, &runner_, 3, "queue", &calls, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->open(host_, nullptr, 3, "queue", &calls, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->open(host_, &runner_, 0, "queue", &calls, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->open(host_, &runner_, 3, nullptr, &calls, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(service_->open(host_, &runner_, 3, "sixteen letters!", &calls, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(error_.message, HasSubstr("'sixteen letters!' has more than 15 bytes"));
  runner_.abandon = nullptr;
  EXPECT_EQ(service_->open(host_, &runner_, 3, "queue", &calls, &error_), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(calls, nullptr);
}

// Its Run hangs whatever happens, until the test ends it; nothing else does.
class StuckRunner final : public sdk::Runner {
 public:
  void Run(sdk::Running&) override {
    begun.set_value();
    end.get_future().wait();
  }
  void Abandon(const sdk::Running&) override {}
  std::optional<sdk::Failure> GiveUp(sdk::Running& running, bool has_begun) override {
    if (has_begun && !give_up) return std::nullopt;
    return sdk::Failure(DTRUN_TIMEOUT, sdk::OperationText(*running.op) + " is stuck");
  }

  std::promise<void> begun, end;
  std::atomic<bool> give_up{false};
};

TEST(CallQueue, LeavesACallBehindThatNothingEnds) {
  StuckRunner runner;
  sdk::CallQueue queue(sdk::Host(conformance::Host()), runner, "queue", 3, std::chrono::milliseconds(1));
  auto first = queue.Enqueue(Barrier(1));
  runner.begun.get_future().wait();
  auto second = queue.Enqueue(Barrier(2));
  const auto failure = [](sdk::Request& request) -> std::string {
    try {
      request.Wait(sdk::kNoLimit);
      return "none";
    } catch (const sdk::Failure& thrown) {
      return thrown.what();
    }
  };
  EXPECT_FALSE(first->Wait(std::chrono::milliseconds(5)));
  EXPECT_EQ(failure(*second), "barrier 2 is stuck");
  second.reset();
  runner.give_up = true;
  EXPECT_EQ(failure(*first), "barrier 1 is stuck");
  first.reset();
  EXPECT_FALSE(queue.Stop(std::chrono::milliseconds(5)));
  runner.end.set_value();
  EXPECT_TRUE(queue.Stop(sdk::kNoLimit));
}

}  // namespace
}  // namespace dtrun::services
