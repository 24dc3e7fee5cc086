// What a completed send owes: its message reaches a receiver that looks late, although the sender's
// communicator is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "suite.h"

namespace dtrun::conformance {
namespace {

// A send that needs its receiver does not complete, and owes nothing.
constexpr std::chrono::milliseconds kWithoutReceiver{500};

// Of the first messages, each of another size; small ones follow, as a backend may keep only some of them.
constexpr std::size_t kOfSizes = 4, kAll = 1000;

// Which messages, by tag.
using Tags = std::vector<bool>;

constexpr std::size_t kWord = 60;  // bits of a number of Rank::Count

// Rank 0 sends them to rank 1, each with its own tag.
struct Parcel {
  std::size_t count;
  std::vector<std::int32_t> Data(std::uint32_t tag) const {
    return std::vector<std::int32_t>(count, static_cast<std::int32_t>(tag) + 11);
  }
};

// Starts them all, or only the first kOfSizes if the first one does not complete at once. `counted` is called
// with those that were complete some time later, and then the others are waited for.
template <class Counted>
void SendAll(Rank& rank, const std::vector<Parcel>& parcels, Counted&& counted) {
  std::vector<std::vector<std::int32_t>> data;
  std::vector<std::unique_ptr<Pending>> pending;
  Tags complete;
  const auto start = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto tag = static_cast<std::uint32_t>(i);
      data.push_back(parcels[i].Data(tag));
      pending.push_back(rank.Start(SendOp(data.back().data(), data.back().size(), DTRUN_INT32, 1, tag)));
    }
    const auto deadline = std::chrono::steady_clock::now() + kWithoutReceiver;
    for (std::size_t i = begin; i < end; ++i) {
      const nanoseconds left = deadline - std::chrono::steady_clock::now();
      const Outcome outcome = pending[i]->Wait(std::max(left, nanoseconds(0)));
      EXPECT_TRUE(outcome.ok() || outcome.code == DTRUN_PENDING) << outcome;
      complete.push_back(outcome.ok());
    }
  };
  start(0, kOfSizes);
  if (complete[0]) start(kOfSizes, parcels.size());
  counted(complete);
  for (const auto& one : pending) {
    const Outcome outcome = one->Wait();
    EXPECT_TRUE(outcome.ok()) << outcome;
  }
}

// Those of which `complete` is that.
void ReceiveThese(Rank& rank, const std::vector<Parcel>& parcels, const Tags& complete, bool which) {
  for (std::uint32_t tag = 0; tag < complete.size(); ++tag) {
    if (complete[tag] != which) continue;
    if (testing::Test::HasFailure()) return;
    std::vector<std::int32_t> got(parcels[tag].count, -1);  // the last byte of each element is another one
    dtrun_op op = RecvOp(got.data(), got.size(), DTRUN_INT32, 0, tag);
    if (tag % 2 == 0) op.flags = DTRUN_OP_BLOCKING;
    Outcome outcome;
    if (const auto pending = rank.Start(op, &outcome)) outcome = pending->Wait(kNoLimit);
    EXPECT_TRUE(outcome.ok()) << "a message of " << got.size() * 4
                              << " bytes, the send of which had completed: " << outcome;
    EXPECT_TRUE(got == parcels[tag].Data(tag)) << "a message of " << got.size() * 4 << " bytes";
  }
}

// The receiver starts to receive some time after the sender has begun to destroy its communicator.
void CompletedMessagesOutliveTheirSender(const Subject& subject, std::chrono::seconds late) {
  std::vector<Parcel> parcels = {{1}, {1003}, {100'000}, {1'500'001}};
  parcels.resize(kAll, Parcel{25});
  subject.PlayWithoutJoining(2, [&](dtrun_kv* kv, int number) {
    Outcome joined;
    const auto rank = subject.Join(kv, number, 2, kPatience, &joined);
    ASSERT_NE(rank, nullptr) << joined;
    if (number == 0) {
      SendAll(*rank, parcels, [&](const Tags& complete) {
        for (std::size_t tag = 0; tag < complete.size(); ++tag)
          if (complete[tag])
            rank->Count("complete/" + std::to_string(tag / kWord), std::int64_t{1} << tag % kWord);
        rank->Count("started", static_cast<std::int64_t>(complete.size()));
        rank->Tell("sent");
      });
      return rank->Tell("leaves");  // and destroys it at once
    }
    rank->Await("sent");
    Tags complete(static_cast<std::size_t>(rank->Count("started", 0)));
    for (std::size_t tag = 0; tag < complete.size(); ++tag)
      complete[tag] = (rank->Count("complete/" + std::to_string(tag / kWord), 0) >> tag % kWord & 1) != 0;
    ReceiveThese(*rank, parcels, complete, false);
    if (std::ranges::count(complete, true) == 0) return;  // none is owed
    rank->Await("leaves");
    std::this_thread::sleep_for(late);  // the point of the case is that this time passes
    ReceiveThese(*rank, parcels, complete, true);
  });
}

}  // namespace

void AddDeliveryCases(const BackendUnderTest& backend) {
  AddCase("Messages", "ThatAreCompleteOutliveTheirSender", "B21", backend, [=](const Subject& subject) {
    CompletedMessagesOutliveTheirSender(subject, std::chrono::seconds(backend.wide ? 8 : 2));
  });
}

}  // namespace dtrun::conformance
