// The algorithms have their own tests; these test the path through the C table.
#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <vector>

#include "dtrun/plugin/collectives.hpp"
#include "dtrun/plugin/op.hpp"
#include "sdk/algorithms/mailbox.h"
#include "sdk/algorithms/trial.h"
#include "sdk/conformance/host.h"
#include "sdk/services/services.h"

namespace dtrun::services {
namespace {

using algorithms::Mailbox;
using testing::HasSubstr;

Mailbox& BoxOf(void* context) { return *static_cast<Mailbox*>(context); }

dtrun_messenger TableOf(Mailbox& mailbox) {
  dtrun_messenger table;
  DTRUN_INIT(table);
  table.context = &mailbox;
  table.rank = mailbox.rank();
  table.size = mailbox.size();
  table.send = [](void* context, std::int32_t peer, const void* data, std::uint64_t bytes,
                  dtrun_message** out, dtrun_error* err) {
    return sdk::Guard(err, [&] {
      *out = static_cast<dtrun_message*>(BoxOf(context).Send(peer, data, bytes));
      return dtrun_status{DTRUN_OK};
    });
  };
  table.recv = [](void* context, std::int32_t peer, void* data, std::uint64_t bytes, dtrun_message** out,
                  dtrun_error* err) {
    return sdk::Guard(err, [&] {
      *out = static_cast<dtrun_message*>(BoxOf(context).Recv(peer, data, bytes));
      return dtrun_status{DTRUN_OK};
    });
  };
  table.wait = [](void* context, dtrun_message* message, dtrun_error* err) {
    return sdk::Guard(err, [&] {
      BoxOf(context).Wait(message);
      return dtrun_status{DTRUN_OK};
    });
  };
  table.cancel = [](void* context) { BoxOf(context).Cancel(); };
  return table;
}

class Opened {
 public:
  explicit Opened(const dtrun_messenger& table) {
    EXPECT_EQ(Collectives()->open(nullptr, &table, &handle, nullptr), DTRUN_OK);
  }
  ~Opened() { Collectives()->close(nullptr, handle); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  dtrun_collectives* handle = nullptr;
};

// The status and error text that `run` returns for `op` in a communicator of one rank.
std::pair<dtrun_status, std::string> Verdict(const dtrun_op* op) {
  algorithms::Post post;
  Mailbox mailbox(post, 0, 1);
  const Opened collectives(TableOf(mailbox));
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_status status = Collectives()->run(nullptr, collectives.handle, op, &error);
  return {status, error.message};
}

TEST(CollectivesService, CarriesOutEveryCollective) {
  algorithms::PlayRanks(3, [](Mailbox& mailbox) {
    const Opened collectives(TableOf(mailbox));
    const std::uint64_t counts[] = {5, 5, 5};
    for (std::int32_t kind = 1; kind < sdk::kOperationEnd; ++kind) {
      if (!sdk::IsCollective(kind)) continue;
      // Every rank sends ones: a reduction over three ranks gives threes, everything else moves
      // them.
      std::vector<std::int32_t> send(15, 1), recv(15, 0);
      dtrun_op op = algorithms::Op(kind, send.data(), recv.data(), 5);
      op.root = sdk::IsRooted(kind) ? 1 : -1;
      op.send_counts = op.recv_counts = counts;
      if (kind == DTRUN_BROADCAST && mailbox.rank() == op.root) recv = send;
      ASSERT_EQ(Collectives()->run(nullptr, collectives.handle, &op, nullptr), DTRUN_OK) << kind;
      const sdk::Form& form = sdk::FormOf(kind);
      const bool receives = form.recv != sdk::Shape::kNone &&
                            (form.recv_on == sdk::On::kEveryRank || mailbox.rank() == op.root);
      const int expected = !receives ? 0 : form.reduces ? 3 : 1;
      EXPECT_EQ(recv[0], expected) << kind;
      EXPECT_EQ(recv[4], expected) << kind;
    }
  });
}

TEST(CollectivesService, ReadsAShorterOperationAsOneWithoutTheRest) {
  std::vector<float> data{7};
  dtrun_op op = algorithms::Op(DTRUN_ALLREDUCE, data.data(), data.data(), 1);
  op.struct_size = offsetof(dtrun_op, scale);
  EXPECT_EQ(Verdict(&op).first, DTRUN_OK);
}

TEST(CollectivesService, FailsAsTheMessengerDoesAndCancelsWhatIsUnderWay) {
  algorithms::PlayRanks(3, [](Mailbox& mailbox) {
    if (mailbox.rank() == 1) mailbox.FailAfter(2);
    const Opened collectives(TableOf(mailbox));
    std::vector<std::int32_t> data(300'000);
    const dtrun_op op = algorithms::Op(DTRUN_ALLREDUCE, data.data(), data.data(), data.size());
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = Collectives()->run(nullptr, collectives.handle, &op, &error);
    if (mailbox.rank() == 1) {
      EXPECT_EQ(status, DTRUN_SYSTEM);
      EXPECT_STREQ(error.message, "broken");
    }
    EXPECT_NE(status, DTRUN_OK);
    EXPECT_TRUE(mailbox.cancelled());
    EXPECT_EQ(mailbox.under_way(), 0u);
  });
}

TEST(CollectivesService, NamesAStatusThatAMessengerCannotHave) {
  algorithms::Post post;
  Mailbox mailbox(post, 0, 2);
  dtrun_messenger table = TableOf(mailbox);
  table.recv = [](void*, std::int32_t, void*, std::uint64_t, dtrun_message**, dtrun_error*) {
    return dtrun_status{DTRUN_PENDING};
  };
  table.send = [](void*, std::int32_t, const void*, std::uint64_t, dtrun_message**, dtrun_error*) {
    return dtrun_status{DTRUN_PENDING};
  };
  const Opened collectives(table);
  const dtrun_op op = algorithms::Op(DTRUN_BARRIER, nullptr, nullptr, 0);
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  EXPECT_EQ(Collectives()->run(nullptr, collectives.handle, &op, &error), DTRUN_INTERNAL);
  EXPECT_THAT(error.message, HasSubstr("the plugin's dtrun_messenger.recv returned status 1"));
}

TEST(CollectivesService, RefusesWhatIsNoCollectiveOfThisCommunicator) {
  std::int32_t one = 1;
  dtrun_op op = algorithms::Op(DTRUN_SEND, &one, nullptr, 1);
  EXPECT_EQ(Verdict(&op).first, DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(Verdict(&op).second, HasSubstr("send is a message"));
  op.kind = 77;
  EXPECT_EQ(Verdict(&op).first, DTRUN_UNSUPPORTED);
  op = algorithms::Op(DTRUN_ALLREDUCE, &one, &one, 1);
  op.dtype = 99;
  EXPECT_EQ(Verdict(&op), std::make_pair(dtrun_status{DTRUN_UNSUPPORTED},
                                         std::string("allreduce: unknown element type 99")));
  op = algorithms::Op(DTRUN_ALLREDUCE, &one, &one, 1);
  op.reduce = DTRUN_AVG;
  EXPECT_EQ(Verdict(&op).first, DTRUN_UNSUPPORTED);
  op = algorithms::Op(DTRUN_BROADCAST, nullptr, &one, 1);
  op.root = 1;
  EXPECT_EQ(Verdict(&op).first, DTRUN_INVALID_ARGUMENT);
  EXPECT_THAT(Verdict(&op).second, HasSubstr("the root is 1 of 1 ranks"));
  op = algorithms::Op(DTRUN_ALLGATHERV, &one, &one, 1);
  EXPECT_THAT(Verdict(&op).second, HasSubstr("recv_counts is a null pointer"));
  op = algorithms::Op(DTRUN_BARRIER, nullptr, nullptr, 0);
  op.flags = DTRUN_OP_DETACHED;
  EXPECT_EQ(Verdict(&op).first, DTRUN_UNSUPPORTED);
  EXPECT_EQ(Verdict(nullptr).first, DTRUN_INVALID_ARGUMENT);
}

TEST(CollectivesService, TakesTheMessengerOfTheCxxWrapper) {
  algorithms::PlayRanks(3, [](Mailbox& mailbox) {
    const sdk::Collectives collectives(sdk::Host(conformance::Host()), mailbox);
    std::vector<std::int32_t> data{mailbox.rank() + 1};
    collectives.Run(algorithms::Op(DTRUN_ALLREDUCE, data.data(), data.data(), 1));
    EXPECT_EQ(data[0], 6);
    if (mailbox.rank() == 1) mailbox.FailAfter(1);
    EXPECT_THROW(collectives.Run(algorithms::Op(DTRUN_BARRIER, nullptr, nullptr, 0)), sdk::Failure);
  });
}

TEST(CollectivesService, OpensNothingIncomplete) {
  algorithms::Post post;
  Mailbox mailbox(post, 0, 1);
  dtrun_collectives* out = nullptr;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  EXPECT_EQ(Collectives()->open(nullptr, nullptr, &out, &error), DTRUN_INVALID_ARGUMENT);
  dtrun_messenger table = TableOf(mailbox);
  table.wait = nullptr;
  EXPECT_EQ(Collectives()->open(nullptr, &table, &out, &error), DTRUN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "dtrun_messenger.wait is a null pointer");
  table = TableOf(mailbox);
  table.rank = 4;
  EXPECT_EQ(Collectives()->open(nullptr, &table, &out, &error), DTRUN_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(Collectives()->run(nullptr, nullptr, nullptr, &error), DTRUN_INVALID_ARGUMENT);
  Collectives()->close(nullptr, nullptr);
}

}  // namespace
}  // namespace dtrun::services
