// What a completed send owes: its message reaches a receiver that looks late, although the sender's
// communicator is gone.
#include <gtest/gtest.h>

#include <thread>

#include "suite.h"

namespace dtrun::conformance {
namespace {

// A send that needs its receiver does not complete, and owes nothing.
constexpr std::chrono::milliseconds kWithoutReceiver{500};

// Of the first messages, each of another size; small ones follow, as a backend may keep only some of them.
constexpr std::size_t kOfSizes = 4, kAll = 60;

// Rank 0 sends them to rank 1, each with its own tag.
struct Parcel {
  std::size_t count;
  std::vector<std::int32_t> Data(std::uint32_t tag) const {
    return std::vector<std::int32_t>(count, static_cast<std::int32_t>(tag) + 11);
  }
};

// Starts them all, or only the first kOfSizes if the first one does not complete at once. `counted` is called
// with the bits of those that did not, and then they are waited for.
template <class Counted>
void SendAll(Rank& rank, const std::vector<Parcel>& parcels, Counted&& counted) {
  std::vector<std::vector<std::int32_t>> data;
  std::vector<std::unique_ptr<Pending>> pending;
  std::int64_t waiting = 0;
  const auto start = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto tag = static_cast<std::uint32_t>(i);
      data.push_back(parcels[i].Data(tag));
      pending.push_back(rank.Start(SendOp(data.back().data(), data.back().size(), DTRUN_INT32, 1, tag)));
    }
    for (std::size_t i = begin; i < end; ++i) {
      const Outcome outcome = pending[i]->Wait(kWithoutReceiver);
      if (outcome.code == DTRUN_PENDING) {
        waiting |= std::int64_t{1} << i;
      } else {
        EXPECT_TRUE(outcome.ok()) << outcome;
      }
    }
  };
  start(0, kOfSizes);
  if ((waiting & 1) == 0) start(kOfSizes, parcels.size());
  counted(waiting);
  for (const auto& one : pending) {
    const Outcome outcome = one->Wait();
    EXPECT_TRUE(outcome.ok()) << outcome;
  }
}

void ReceiveThese(Rank& rank, const std::vector<Parcel>& parcels, std::int64_t which) {
  for (std::uint32_t tag = 0; tag < parcels.size(); ++tag) {
    if ((which >> tag & 1) == 0) continue;
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
      SendAll(*rank, parcels, [&](std::int64_t waiting) {
        rank->Count("waiting", waiting);
        rank->Tell("sent");
      });
      return rank->Tell("leaves");  // and destroys it at once
    }
    rank->Await("sent");
    const std::int64_t waiting = rank->Count("waiting", 0);
    const std::vector<Parcel> sent(parcels.begin(),
                                   (waiting & 1) == 0 ? parcels.end() : parcels.begin() + kOfSizes);
    ReceiveThese(*rank, sent, waiting);
    if (waiting + 1 == std::int64_t{1} << sent.size()) return;  // none is owed
    rank->Await("leaves");
    std::this_thread::sleep_for(late);  // the point of the case is that this time passes
    ReceiveThese(*rank, sent, ~waiting);
  });
}

}  // namespace

void AddDeliveryCases(const BackendUnderTest& backend) {
  AddCase("Messages", "ThatAreCompleteOutliveTheirSender", "B21", backend, [=](const Subject& subject) {
    CompletedMessagesOutliveTheirSender(subject, std::chrono::seconds(backend.wide ? 8 : 2));
  });
}

}  // namespace dtrun::conformance
