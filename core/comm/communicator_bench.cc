// The cost per call of the ABI, the C++ wrapper and core, in nanoseconds, measured with tables that complete
// operations at once. Prints the median and the best of several runs.
//
//   comm_bench [libdtrun_backend_instant.so]     the plugin beside it that the C++ wrapper makes
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/comm/communicator.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "dtrun/plugin/failure.hpp"

namespace {

constexpr int kRuns = 31;
constexpr int kCalls = 100'000;

dtrun_backend NullTable() {
  static char something;
  dtrun_backend t;
  DTRUN_INIT(t);
  t.query_caps = [](dtrun_instance*, dtrun_backend_caps* out, dtrun_error*) -> dtrun_status {
    out->ops = out->dtypes = out->reduces = out->reduce_dtypes = ~std::uint64_t{0};
    return DTRUN_OK;
  };
  t.comm_create = [](dtrun_instance*, const dtrun_comm_params*, dtrun_backend_comm** out,
                     dtrun_error*) -> dtrun_status {
    *out = reinterpret_cast<dtrun_backend_comm*>(&something);
    return DTRUN_OK;
  };
  t.comm_destroy = [](dtrun_backend_comm*) {};
  t.enqueue = [](dtrun_backend_comm*, const dtrun_op*, const dtrun_stream*, dtrun_request** out,
                 dtrun_error*) -> dtrun_status {
    *out = reinterpret_cast<dtrun_request*>(&something);
    return DTRUN_PENDING;
  };
  t.req_test = [](dtrun_request*, dtrun_error*) -> dtrun_status { return DTRUN_OK; };
  t.req_wait_host = [](dtrun_request*, std::int64_t, dtrun_error*) -> dtrun_status { return DTRUN_OK; };
  t.req_release = [](dtrun_request*) {};
  return t;
}

// A rejected call would look fast.
void Must(dtrun_status status) {
  if (status == DTRUN_OK) return;
  std::fprintf(stderr, "a call failed with status %d\n", status);
  std::exit(1);
}

template <class Body>
void Measure(const char* what, Body&& body) {
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) body();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    runs.push_back(spent.count() / kCalls);
  }
  std::sort(runs.begin(), runs.end());
  std::printf("%-28s median %6.1f ns, best %6.1f ns\n", what, runs[kRuns / 2], runs[0]);
}

// A traced call, in bursts that the trace's writer can follow; between them the pipe is emptied.
void MeasureTraced(dtrun::comm::Making making, float* send, float* recv);

dtrun_op Op(std::int32_t kind, float* send, float* recv) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = DTRUN_FLOAT32;
  op.reduce = DTRUN_SUM;
  op.root = op.peer = -1;
  op.send = send;
  op.recv = recv;
  op.count = 2;
  return op;
}

// Through the table of a C++ plugin, as core calls it: an operation that completes in enqueue, and one with a
// request.
void MeasureWrapper(const char* path) {
  const dtrun::plugin::File file{dtrun::plugin::Kind::kBackend, "instant", path, "argument", {}, {}};
  const auto plugin = dtrun::plugin::Load(file);
  if (!plugin) {
    std::fprintf(stderr, "%s\n", plugin.error().text.c_str());
    std::exit(1);
  }
  const dtrun_plugin& table = (*plugin)->table();
  const dtrun_backend& backend = (*plugin)->backend();
  static const dtrun_options kNoOptions;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  dtrun_instance* instance = nullptr;
  dtrun_comm_params params;
  DTRUN_INIT(params);
  dtrun_backend_comm* comm = nullptr;
  if (dtrun::sdk::InitPlugin(table, &(*plugin)->host(), &kNoOptions, &instance, &error) != DTRUN_OK ||
      backend.comm_create(instance, &params, &comm, &error) != DTRUN_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    std::exit(1);
  }
  float send[16] = {}, recv[16] = {};
  dtrun_request* request = nullptr;
  const dtrun_op inline_op = Op(DTRUN_BARRIER, send, recv), started = Op(DTRUN_ALLREDUCE, send, recv);
  Measure("plugin in C++, inline",
          [&] { (void)backend.enqueue(comm, &inline_op, nullptr, &request, &error); });
  Measure("plugin in C++, with a request", [&] {
    (void)backend.enqueue(comm, &started, nullptr, &request, &error);
    (void)backend.req_wait_host(request, -1, &error);
    backend.req_release(request);
  });
  backend.comm_destroy(comm);
  table.shutdown(instance);
}

void MeasureTraced(dtrun::comm::Making making, float* send, float* recv) {
  std::string folder = "/tmp/dtrun-bench-XXXXXX";
  const std::string pipe = std::string(::mkdtemp(folder.data())) + "/pipe";
  if (::mkfifo(pipe.c_str(), 0600) != 0) std::exit(1);
  const int end = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  auto writer = dtrun::comm::TraceWriter::Open(pipe, std::uint64_t{1} << 40, 0);
  ::unlink(pipe.c_str());
  ::rmdir(folder.c_str());
  if (!writer) std::exit(1);
  making.trace = writer->get();
  auto comm = std::move(dtrun_comm::Create(std::move(making))).value();
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  constexpr int kBurst = 2000;
  std::vector<double> runs;
  static char taken[1 << 20];
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBurst; ++i) {
      dtrun_op op = Op(DTRUN_ALLREDUCE, send, recv);
      Must(comm->Start(op, nullptr, &error));
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    runs.push_back(spent.count() / kBurst);
    for (ssize_t left = kBurst * 64; left > 0;)
      if (const ssize_t size = ::read(end, taken, sizeof taken); size > 0) left -= size;
  }
  std::sort(runs.begin(), runs.end());
  std::printf("%-28s median %6.1f ns, best %6.1f ns\n", "blocking allreduce, traced", runs[kRuns / 2],
              runs[0]);
  comm.reset();
  writer->reset();
  ::close(end);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) MeasureWrapper(argv[1]);
  const dtrun_backend table = NullTable();
  dtrun::comm::Making making;
  making.backend = table;
  making.backend_name = "null";
  making.name = "world";
  making.size = 8;
  making.timeout = std::chrono::seconds(60);
  auto comm = std::move(dtrun_comm::Create(std::move(making))).value();
  float send[16] = {}, recv[16] = {};
  std::uint64_t counts[8] = {2, 2, 2, 2, 2, 2, 2, 2};
  dtrun_error error;
  DTRUN_ERROR_INIT(error);

  dtrun::comm::Making traced;
  traced.backend = table;
  traced.backend_name = "null";
  traced.name = "world";
  traced.size = 8;
  traced.timeout = std::chrono::seconds(60);
  MeasureTraced(std::move(traced), send, recv);
  Measure("the table alone", [&] {
    const dtrun_op op = Op(DTRUN_ALLREDUCE, send, recv);
    dtrun_request* request = nullptr;
    (void)table.enqueue(nullptr, &op, nullptr, &request, &error);
    (void)table.req_wait_host(request, -1, &error);
    table.req_release(request);
  });
  Measure("blocking allreduce", [&] {
    dtrun_op op = Op(DTRUN_ALLREDUCE, send, recv);
    Must(comm->Start(op, nullptr, &error));
  });
  Measure("blocking allgatherv, 8 ranks", [&] {
    dtrun_op op = Op(DTRUN_ALLGATHERV, send, recv);
    op.recv_counts = counts;
    Must(comm->Start(op, nullptr, &error));
  });
  Measure("allreduce started, waited for", [&] {
    dtrun_op op = Op(DTRUN_ALLREDUCE, send, recv);
    dtrun_work* work = nullptr;
    Must(comm->Start(op, &work, &error));
    Must(comm->Wait(*work, -1, &error));
    comm->Release(work);
  });
}
