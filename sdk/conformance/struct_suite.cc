// A backend between headers of different sizes: every struct that it is given, as at ABI 1.0 and 64 bytes
// longer than these headers', with an inaccessible page behind it.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "guard.h"
#include "host.h"
#include "raw_calls.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr auto kAtOnce = std::chrono::milliseconds(50);

std::string Sized(const char* what, std::size_t bytes) {
  return "a " + std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

void CapsFitTheCaller(const Subject& subject) {
  const dtrun_backend_caps whole = subject.Caps();
  for (const std::size_t bytes : Sizes<dtrun_backend_caps>()) {
    SCOPED_TRACE(Sized("dtrun_backend_caps", bytes));
    const Guarded<dtrun_backend_caps> caps("dtrun_backend_caps", dtrun_backend_caps{}, bytes);
    EXPECT_EQ(subject.table().query_caps(subject.instance(), caps.get(), nullptr), DTRUN_OK);
    EXPECT_EQ(caps.Damage(), "");
    EXPECT_EQ(std::memcmp(&caps.get()->features, &whole.features,
                          std::min(bytes, sizeof whole) - offsetof(dtrun_backend_caps, features)),
              0)
        << "it gives another answer than at full size";
  }
}

// A world without its other rank is a failure that every backend reports.
void ErrorsFitTheCaller(const Subject& subject) {
  static constexpr std::int32_t kHosts[] = {0, 0};
  for (const std::size_t bytes : Sizes<dtrun_error>()) {
    SCOPED_TRACE(Sized("dtrun_error", bytes));
    ThreadKv kv;
    dtrun_comm_params params = Params(&kv, 0, 2, kHosts);
    params.timeout_ns = nanoseconds(kAtOnce).count();
    const Guarded<dtrun_error> error("dtrun_error", EmptyError(), bytes);
    dtrun_backend_comm* comm = nullptr;
    const dtrun_status status = subject.table().comm_create(subject.instance(), &params, &comm, error.get());
    ASSERT_NE(status, DTRUN_OK) << "a world without its other rank came about";
    EXPECT_EQ(comm, nullptr) << "it failed and wrote to *out";
    EXPECT_EQ(error.Damage(), "");
    EXPECT_EQ(error.Read().code, status);
    const std::size_t room = std::min(bytes, sizeof(dtrun_error)) - offsetof(dtrun_error, message);
    EXPECT_NE(error.get()->message[0], '\0') << "no text";
    EXPECT_NE(std::memchr(error.get()->message, '\0', room), nullptr) << "the message does not end with NUL";
  }
  ThreadKv kv;
  dtrun_comm_params params = Params(&kv, 0, 2, kHosts);
  params.timeout_ns = nanoseconds(kAtOnce).count();
  dtrun_backend_comm* comm = nullptr;
  EXPECT_NE(subject.table().comm_create(subject.instance(), &params, &comm, nullptr), DTRUN_OK)
      << "without a dtrun_error";
}

void CommParamsFitThePlugin(const Subject& subject) {
  static constexpr std::int32_t kHosts[] = {0};
  if (!subject.InOneProcess()) GTEST_SKIP() << "worlds of one rank are made by one process alone";
  for (const std::size_t bytes : Sizes<dtrun_comm_params>()) {
    SCOPED_TRACE(Sized("dtrun_comm_params", bytes));
    ThreadKv kv;
    const Guarded<dtrun_comm_params> params("dtrun_comm_params", Params(&kv, 0, 1, kHosts), bytes);
    dtrun_error error = EmptyError();
    dtrun_backend_comm* comm = nullptr;
    ASSERT_EQ(subject.table().comm_create(subject.instance(), params.get(), &comm, &error), DTRUN_OK)
        << error.message;
    EXPECT_EQ(params.Writes(), "");
    subject.table().comm_destroy(comm);
  }
}

void OpsFitThePlugin(const Subject& subject) {
  subject.Play(2, [&](Rank& rank) {
    for (const std::size_t bytes : Sizes<dtrun_op>()) {
      SCOPED_TRACE(Sized("dtrun_op", bytes));
      std::int32_t value = rank.rank() == 0 ? 5 : 0;
      dtrun_error error = EmptyError();
      const dtrun_op op =
          rank.rank() == 0 ? SendOp(&value, 1, DTRUN_INT32, 1, 0) : RecvOp(&value, 1, DTRUN_INT32, 0, 0);
      EXPECT_EQ(RunGuarded(subject, rank, op, bytes, &error), DTRUN_OK) << error.message;
      EXPECT_EQ(value, 5);
    }
  });
}

void LaunchStructsFitThePlugin(const Subject& subject) {
  if (subject.table().launch_info == nullptr) GTEST_SKIP() << "the backend says nothing at launch";
  dtrun_launch_query query;
  DTRUN_INIT(query);
  query.host_count = query.local_ranks = 1;
  dtrun_launch_sink sink;
  DTRUN_INIT(sink);
  sink.fact = &TakeFact;
  sink.env = &TakeVariable;
  for (const std::size_t bytes : Sizes<dtrun_launch_sink>()) {
    SCOPED_TRACE(Sized("dtrun_launch_sink", bytes));
    const Guarded<dtrun_launch_sink> guarded("dtrun_launch_sink", sink, bytes);
    const Guarded<dtrun_launch_query> asked("dtrun_launch_query", query,
                                            sizeof query + (bytes > sizeof sink ? 64 : 0));
    dtrun_error error = EmptyError();
    const dtrun_status status =
        subject.table().launch_info(subject.instance(), asked.get(), guarded.get(), &error);
    // What cannot be delivered may be a failure.
    EXPECT_TRUE(status == DTRUN_OK || bytes < sizeof sink) << error.message;
    EXPECT_EQ(guarded.Writes(), "");
    EXPECT_EQ(asked.Writes(), "");
  }
}

// A sink's failure comes back.
void ALaunchSinkMayRefuse(const Subject& subject) {
  if (subject.table().launch_info == nullptr) GTEST_SKIP() << "the backend says nothing at launch";
  dtrun_launch_query query;
  DTRUN_INIT(query);
  query.host_count = query.local_ranks = 1;
  bool refused = false;
  dtrun_launch_sink refusing;
  DTRUN_INIT(refusing);
  refusing.context = &refused;
  refusing.fact = [](void* context, const char*, dtrun_string, dtrun_error* error) {
    *static_cast<bool*>(context) = true;
    return dtrun_error_set(error, DTRUN_OUT_OF_MEMORY, -1, "no room for a fact");
  };
  refusing.env = [](void* context, const char*, const char*, dtrun_error* error) {
    *static_cast<bool*>(context) = true;
    return dtrun_error_set(error, DTRUN_OUT_OF_MEMORY, -1, "no room for a variable");
  };
  for (const bool facts : {true, false}) {
    SCOPED_TRACE(facts ? "a fact is refused" : "a variable is refused");
    dtrun_launch_sink sink = refusing;
    if (facts) {
      sink.env = &TakeVariable;
    } else {
      sink.fact = &TakeFact;
    }
    dtrun_error error = EmptyError();
    refused = false;
    const dtrun_status status = subject.table().launch_info(subject.instance(), &query, &sink, &error);
    EXPECT_EQ(status, refused ? DTRUN_OUT_OF_MEMORY : DTRUN_OK) << error.message;
  }
}

void SnapshotSinksFitThePlugin(const Subject& subject) {
  if (subject.table().snapshot == nullptr) GTEST_SKIP() << "the backend gives no snapshots";
  subject.Play(1, [&](Rank& rank) {
    for (const std::size_t bytes : {sizeof(dtrun_snapshot_sink), sizeof(dtrun_snapshot_sink) + 64}) {
      SCOPED_TRACE(Sized("dtrun_snapshot_sink", bytes));
      dtrun_snapshot_sink sink;
      DTRUN_INIT(sink);
      sink.line = [](void*, dtrun_string, dtrun_error*) -> dtrun_status { return DTRUN_OK; };
      const Guarded<dtrun_snapshot_sink> guarded("dtrun_snapshot_sink", sink, bytes);
      subject.table().snapshot(rank.raw(), guarded.get());
      EXPECT_EQ(guarded.Writes(), "");
    }
  });
}

void MemoryParamsFitThePlugin(const Subject& subject) {
  if (subject.table().mem_alloc == nullptr) GTEST_SKIP() << "the backend has no memory of its own";
  subject.Play(1, [&](Rank& rank) {
    dtrun_mem_params params;
    DTRUN_INIT(params);
    params.bytes = 4096;
    params.alignment = 64;
    params.device_index = -1;
    for (const std::size_t bytes : Sizes<dtrun_mem_params>()) {
      SCOPED_TRACE(Sized("dtrun_mem_params", bytes));
      const Guarded<dtrun_mem_params> guarded("dtrun_mem_params", params, bytes);
      dtrun_error error = EmptyError();
      void* memory = nullptr;
      ASSERT_EQ(subject.table().mem_alloc(rank.raw(), guarded.get(), &memory, &error), DTRUN_OK)
          << error.message;
      EXPECT_EQ(guarded.Writes(), "");
      std::memset(memory, 1, params.bytes);
      subject.table().mem_free(rank.raw(), memory);
    }
  });
}

void AbortParamsFitThePlugin(const Subject& subject) {
  if (subject.table().comm_abort == nullptr) GTEST_SKIP() << "the backend cannot abort";
  for (const std::size_t bytes : Sizes<dtrun_abort_params>()) {
    subject.Play(1, [&](Rank& rank) {
      SCOPED_TRACE(Sized("dtrun_abort_params", bytes));
      dtrun_abort_params params;
      DTRUN_INIT(params);
      params.reason = {"the test says so", 16};
      const Guarded<dtrun_abort_params> guarded("dtrun_abort_params", params, bytes);
      dtrun_error error = EmptyError();
      EXPECT_EQ(subject.table().comm_abort(rank.raw(), guarded.get(), &error), DTRUN_OK) << error.message;
      EXPECT_EQ(guarded.Writes(), "");
    });
  }
}

}  // namespace

void AddStructCases(const BackendUnderTest& backend) {
  AddCase("Structs", "CapabilitiesOfAnotherSize", "S2, S3, B15", backend, CapsFitTheCaller);
  AddCase("Structs", "ErrorsOfAnotherSize", "S3, E3, E4, E5, S14", backend, ErrorsFitTheCaller);
  AddCase("Structs", "ParametersOfCommunicatorsOfAnotherSize", "S2", backend, CommParamsFitThePlugin);
  AddCase("Structs", "OperationsOfAnotherSize", "S2, B5", backend, OpsFitThePlugin);
  AddCase("Structs", "LaunchSinksOfAnotherSize", "S2, S11", backend, LaunchStructsFitThePlugin);
  AddCase("Structs", "LaunchSinksThatRefuse", "B25", backend, ALaunchSinkMayRefuse);
  AddCase("Structs", "SnapshotSinksOfAnotherSize", "S2", backend, SnapshotSinksFitThePlugin);
  AddCase("Structs", "ParametersOfMemoryOfAnotherSize", "S2", backend, MemoryParamsFitThePlugin);
  AddCase("Structs", "ParametersOfAbortOfAnotherSize", "S2, S5", backend, AbortParamsFitThePlugin);
}

}  // namespace dtrun::conformance
