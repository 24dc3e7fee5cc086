// A backend between headers of different sizes: every struct that it is given, as at ABI 1.0 and 64 bytes
// longer than these headers', with an inaccessible page behind it.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "guard.h"
#include "host.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

constexpr auto kAtOnce = std::chrono::milliseconds(50);

std::string Sized(const char* what, std::size_t bytes) {
  return "a " + std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

dtrun_error EmptyError() {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  return error;
}

dtrun_comm_params Params(dtrun_kv* kv, int rank, int size, const std::int32_t* hosts) {
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = params.local_rank = rank;
  params.size = size;
  params.host_count = 1;
  params.hosts = hosts;
  params.device_kind = DTRUN_DEVICE_HOST;
  params.device_index = -1;
  params.name = {"world", 5};
  params.kv = kv;
  params.timeout_ns = kPatience.count();
  return params;
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

// Enqueues a guarded copy, which is gone when it waits.
dtrun_status RunGuarded(const Subject& subject, const Rank& rank, const dtrun_op& op, std::size_t bytes,
                        dtrun_error* error) {
  dtrun_request* request = nullptr;
  dtrun_status status = DTRUN_OK;
  {
    const Guarded<dtrun_op> guarded("dtrun_op", op, bytes);
    status = subject.table().enqueue(rank.raw(), guarded.get(), nullptr, &request, error);
    EXPECT_EQ(guarded.Writes(), "");
  }
  if (status != DTRUN_PENDING) return status;
  status = subject.table().req_wait_host(request, kPatience.count(), error);
  subject.table().req_release(request);
  return status;
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

dtrun_status TakeFact(void*, const char*, dtrun_string, dtrun_error*) { return DTRUN_OK; }
dtrun_status TakeVariable(void*, const char*, const char*, dtrun_error*) { return DTRUN_OK; }

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
    std::int32_t value = rank.rank();
    dtrun_op op =
        rank.rank() == 0 ? SendOp(&value, 1, DTRUN_INT32, 1, 0) : RecvOp(&value, 1, DTRUN_INT32, 0, 0);
    const auto call = [&](std::uint32_t flags, dtrun_error* error) {
      op.flags = flags;
      return RunGuarded(subject, rank, op, sizeof op, error);
    };
    ExpectFlagsUnderstood("dtrun_op", call, kDeviceDraft);
    EXPECT_EQ(value, 0);
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

void AddStructCases(const BackendUnderTest& backend) {
  AddCase("Structs", "CapabilitiesOfAnotherSize", "S2, S3, B15", backend, CapsFitTheCaller);
  AddCase("Structs", "ErrorsOfAnotherSize", "S3, E3, E4, E5, S14", backend, ErrorsFitTheCaller);
  AddCase("Structs", "ParametersOfCommunicatorsOfAnotherSize", "S2", backend, CommParamsFitThePlugin);
  AddCase("Structs", "OperationsOfAnotherSize", "S2, B5", backend, OpsFitThePlugin);
  AddCase("Structs", "FlagsThatMustBeUnderstood", "S6, E7", backend, OperationsWithStrangeFlagsAreRefused);
  AddCase("Structs", "QueriesWithFlagsThatMustBeUnderstood", "S6", backend,
          QueriesWithStrangeFlagsAreRefused);
  AddCase("Structs", "ParametersWithFlagsThatMustBeUnderstood", "S6, E7", backend,
          ParametersWithStrangeFlagsAreRefused);
  AddCase("Structs", "LaunchSinksOfAnotherSize", "S2, S11", backend, LaunchStructsFitThePlugin);
  AddCase("Structs", "LaunchSinksThatRefuse", "B25", backend, ALaunchSinkMayRefuse);
  AddCase("Structs", "SnapshotSinksOfAnotherSize", "S2", backend, SnapshotSinksFitThePlugin);
  AddCase("Structs", "ParametersOfMemoryOfAnotherSize", "S2", backend, MemoryParamsFitThePlugin);
  AddCase("Structs", "ParametersOfAbortOfAnotherSize", "S2, S5", backend, AbortParamsFitThePlugin);
}

}  // namespace dtrun::conformance
