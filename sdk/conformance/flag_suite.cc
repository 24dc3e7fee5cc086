// Flags that no header has, in every struct that a backend is given: those that must be understood are
// refused, and nothing has happened then; hints change nothing.
#include <gtest/gtest.h>

#include "host.h"
#include "raw_calls.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

// Bits that no header has: first those that are refused, then hints, which `call` undoes. `known`: bits that
// have a meaning there.
template <class Call>
void ExpectFlagsUnderstood(const char* what, Call&& call, std::uint32_t known = 0) {
  constexpr int kFirstFreeHint = 8, kFirstOfStructs = 16;
  for (int bit = 31; bit >= kFirstFreeHint; --bit) {
    if ((known >> bit & 1) != 0) continue;
    dtrun_error error = EmptyError();
    const dtrun_status status = call(1u << bit, &error);
    ASSERT_EQ(status, bit >= kFirstOfStructs ? DTRUN_UNSUPPORTED : DTRUN_OK)
        << (bit >= kFirstOfStructs ? "a flag that must be understood" : "a hint") << ", bit " << bit
        << ", in " << what << " (S6): " << error.message;
  }
}

void OperationsWithStrangeFlagsAreRefused(const Subject& subject) {
  constexpr std::uint32_t kDeviceDraft = 0xfu << 24;
  subject.Play(2, [&](Rank& rank) {
    std::uint32_t value = 0;
    dtrun_op op =
        rank.rank() == 0 ? SendOp(&value, 1, DTRUN_INT32, 1, 0) : RecvOp(&value, 1, DTRUN_INT32, 0, 0);
    const auto call = [&](std::uint32_t flags, dtrun_error* error) {
      op.flags = flags;
      value = rank.rank() == 0 ? flags : 0;
      const dtrun_status status = RunGuarded(subject, rank, op, sizeof op, error);
      if (status == DTRUN_OK) {
        EXPECT_EQ(value, flags) << "a message that was refused has been sent (E7)";
      }
      return status;
    };
    ExpectFlagsUnderstood("dtrun_op", call, kDeviceDraft);
    if (testing::Test::HasFailure() || !subject.Reduces(subject.Caps(), DTRUN_INT32, DTRUN_SUM)) return;
    std::int32_t refused = 100, sum = 1;
    dtrun_op collective = AllreduceOp(&refused, &refused, 1, DTRUN_INT32, DTRUN_SUM);
    collective.flags = 1u << 31;
    collective.sequence = 1;
    dtrun_error error = EmptyError();
    EXPECT_EQ(RunGuarded(subject, rank, collective, sizeof collective, &error), DTRUN_UNSUPPORTED);
    const Outcome outcome = rank.Do(AllreduceOp(&sum, &sum, 1, DTRUN_INT32, DTRUN_SUM));
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(sum, 2) << "a collective that was refused has taken part (E7)";
    EXPECT_EQ(refused, 100) << "a collective that was refused has written its result (E7)";
  });
}

void QueriesWithStrangeFlagsAreRefused(const Subject& subject) {
  const dtrun_backend& table = subject.table();
  dtrun_launch_query query;
  DTRUN_INIT(query);
  query.host_count = query.local_ranks = 1;
  dtrun_launch_sink sink;
  DTRUN_INIT(sink);
  sink.fact = &TakeFact;
  sink.env = &TakeVariable;
  const auto launch = [&](std::uint32_t* flags) {
    return [&, flags](std::uint32_t value, dtrun_error* error) {
      *flags = value;
      const dtrun_status status = table.launch_info(subject.instance(), &query, &sink, error);
      *flags = 0;
      return status;
    };
  };
  if (table.launch_info != nullptr) {
    ExpectFlagsUnderstood("dtrun_launch_query", launch(&query.flags));
    ExpectFlagsUnderstood("dtrun_launch_sink", launch(&sink.flags));
  }
  dtrun_support_query support;
  DTRUN_INIT(support);
  support.kind = DTRUN_SEND;
  support.dtype = DTRUN_FLOAT32;
  support.device_index = -1;
  if (table.query_support == nullptr) return;
  ExpectFlagsUnderstood("dtrun_support_query", [&](std::uint32_t flags, dtrun_error* error) {
    support.flags = flags;
    return table.query_support(subject.instance(), &support, error);
  });
}

void TryFlagsOfCommParams(const Subject& subject) {
  static constexpr std::int32_t kHosts[] = {0};
  if (!subject.InOneProcess()) return;  // worlds of one rank are made by one process alone
  ExpectFlagsUnderstood("dtrun_comm_params", [&](std::uint32_t flags, dtrun_error* error) {
    ThreadKv kv;
    dtrun_comm_params params = Params(&kv, 0, 1, kHosts);
    params.flags = flags;
    dtrun_backend_comm* comm = nullptr;
    const dtrun_status status = subject.table().comm_create(subject.instance(), &params, &comm, error);
    if (status == DTRUN_OK) subject.table().comm_destroy(comm);
    return status;
  });
}

void TryFlagsOfMemory(const Subject& subject, dtrun_backend_comm* comm) {
  const dtrun_backend& table = subject.table();
  std::vector<float> own(64);
  dtrun_mem_params params;
  DTRUN_INIT(params);
  params.bytes = own.size() * sizeof(float);
  params.device_index = -1;
  if (table.mem_register != nullptr) {
    ExpectFlagsUnderstood("dtrun_mem_params of mem_register", [&](std::uint32_t flags, dtrun_error* error) {
      params.flags = flags;
      const dtrun_status status = table.mem_register(comm, &params, own.data(), error);
      if (status == DTRUN_OK) table.mem_deregister(comm, own.data());
      return status;
    });
  }
  if (table.mem_alloc == nullptr) return;
  params.alignment = 64;
  ExpectFlagsUnderstood("dtrun_mem_params of mem_alloc", [&](std::uint32_t flags, dtrun_error* error) {
    void* memory = nullptr;
    params.flags = flags;
    const dtrun_status status = table.mem_alloc(comm, &params, &memory, error);
    if (status == DTRUN_OK) table.mem_free(comm, memory);
    return status;
  });
}

void TryFlagsOfGroups(const Subject& subject, dtrun_backend_comm* comm) {
  const dtrun_backend& table = subject.table();
  dtrun_group_params params;
  DTRUN_INIT(params);
  if (table.group_begin == nullptr) return;
  ExpectFlagsUnderstood("dtrun_group_params", [&](std::uint32_t flags, dtrun_error* error) {
    params.flags = flags;
    const dtrun_status status = table.group_begin(comm, &params, error);
    params.flags = 0;
    if (status == DTRUN_OK) table.group_end(comm, &params, nullptr);
    return status;
  });
}

// A member that returns nothing does nothing instead.
void SnapshotsForStrangeSinksAreNotMade(const Subject& subject) {
  if (subject.table().snapshot == nullptr) GTEST_SKIP() << "the backend gives no snapshots";
  subject.Play(1, [&](Rank& rank) {
    for (int bit = 31; bit >= 8; --bit) {
      int lines = 0;
      dtrun_snapshot_sink sink;
      DTRUN_INIT(sink);
      sink.flags = 1u << bit;
      sink.context = &lines;
      sink.line = [](void* context, dtrun_string, dtrun_error*) -> dtrun_status {
        ++*static_cast<int*>(context);
        return DTRUN_OK;
      };
      subject.table().snapshot(rank.raw(), &sink);
      if (bit >= 16) {
        EXPECT_EQ(lines, 0) << "lines for a dtrun_snapshot_sink with bit " << bit << " (S6)";
      }
    }
  });
}

// Nothing has changed after a refusal: the communicator works. The hint aborts it, at the end.
void ParametersWithStrangeFlagsAreRefused(const Subject& subject) {
  TryFlagsOfCommParams(subject);
  subject.Play(1, [&](Rank& rank) {
    TryFlagsOfGroups(subject, rank.raw());
    TryFlagsOfMemory(subject, rank.raw());
    if (subject.table().comm_abort == nullptr) return;
    ExpectFlagsUnderstood("dtrun_abort_params", [&](std::uint32_t flags, dtrun_error* error) {
      dtrun_abort_params params;
      DTRUN_INIT(params);
      params.reason = {"the test says so", 16};
      params.flags = flags;
      const dtrun_status status = subject.table().comm_abort(rank.raw(), &params, error);
      if (status != DTRUN_OK && Has(subject.Caps().ops, DTRUN_BARRIER)) {
        const Outcome after = rank.Barrier();
        EXPECT_TRUE(after.ok()) << "after an abort that was refused (E7): " << after;
      }
      return status;
    });
  });
}

}  // namespace

void AddFlagCases(const BackendUnderTest& backend) {
  AddCase("Structs", "FlagsThatMustBeUnderstood", "S6, E7", backend, OperationsWithStrangeFlagsAreRefused);
  AddCase("Structs", "QueriesWithFlagsThatMustBeUnderstood", "S6", backend,
          QueriesWithStrangeFlagsAreRefused);
  AddCase("Structs", "ParametersWithFlagsThatMustBeUnderstood", "S6, E7", backend,
          ParametersWithStrangeFlagsAreRefused);
  AddCase("Structs", "SnapshotSinksWithFlagsThatMustBeUnderstood", "S6", backend,
          SnapshotsForStrangeSinksAreNotMade);
}

}  // namespace dtrun::conformance
