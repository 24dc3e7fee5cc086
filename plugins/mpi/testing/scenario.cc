// A rank of the stories in mpi_process_test.cc: a program that is linked with MPI itself.
//
//   scenario STORY PLUGIN
//
// Ends with 0 when the story went as told; says what did not. SUITE_FOLDER is where the ranks
// meet; rank and size come from mpirun, or from STORY_RANK and STORY_SIZE without it.
#define OMPI_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "dtrun/plugin/failure.hpp"
#include "sdk/conformance/subject.h"

namespace {
int takes_cuda = 0;
}
// The program's comes before the library's.
extern "C" __attribute__((visibility("default"))) int MPIX_Query_cuda_support(void) { return takes_cuda; }

namespace dtrun::conformance {
namespace {

using std::chrono::seconds;

int Number(const char* mpirun, const char* otherwise) {
  const char* text = std::getenv(mpirun);
  if (text == nullptr) text = std::getenv(otherwise);
  if (text == nullptr) throw std::runtime_error(std::string(otherwise) + " is unset");
  return std::atoi(text);
}

void Expect(bool truth, const std::string& what) {
  if (!truth) throw std::runtime_error(what);
}

void Expect(const Outcome& outcome, dtrun_status code, const std::string& text) {
  Expect(outcome.code == code && outcome.text.find(text) != std::string::npos,
         "expected " + std::to_string(code) + " and '" + text + "', got " + std::to_string(outcome.code) +
             ": " + outcome.text);
}

struct Story {
  std::string plugin;
  int rank = Number("OMPI_COMM_WORLD_RANK", "STORY_RANK");
  int size = Number("OMPI_COMM_WORLD_SIZE", "STORY_SIZE");
  FolderKv kv{std::getenv("SUITE_FOLDER")};

  Subject Load() const { return Subject({.plugin = plugin}); }

  std::unique_ptr<Rank> Join(const Subject& subject, Outcome* outcome) {
    return subject.Join(&kv, rank, size, seconds(30), outcome);
  }
};

void Sum(Rank& rank) {
  std::vector<float> data(1000, 1);
  dtrun_op op = AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM);
  for (const std::uint32_t flags : {0u, static_cast<std::uint32_t>(DTRUN_OP_BLOCKING)}) {
    data.assign(data.size(), 1);
    op.flags = flags;
    const Outcome outcome = rank.Do(op);
    Expect(outcome.ok(), "allreduce: " + outcome.text);
    Expect(data == std::vector<float>(data.size(), static_cast<float>(rank.size())), "the sum is wrong");
  }
}

// MPI was not started for these ranks.
void Alone(Story& story) {
  const Subject subject = story.Load();
  Outcome outcome;
  Expect(story.Join(subject, &outcome) == nullptr, "two singletons have joined");
  Expect(outcome, DTRUN_FAILED_PRECONDITION, "start the job under mpirun");
}

void UseMpi(const Story& story) {
  int flag = 0;
  MPI_Finalized(&flag);
  Expect(flag == 0, "the plugin has finalized the program's MPI");
  int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  Expect(sum == story.size, "the program's own sum is wrong");
}

// The program starts and ends MPI; the plugin comes and goes in between.
void Initialised(Story& story) {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  {
    const Subject subject = story.Load();
    Outcome outcome;
    const auto rank = story.Join(subject, &outcome);
    Expect(rank != nullptr, outcome.text);
    Sum(*rank);
  }
  UseMpi(story);
  MPI_Finalize();
}

void InitialisedForOneThread(Story& story) {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &level);
  {
    const Subject subject = story.Load();
    Outcome outcome;
    Expect(story.Join(subject, &outcome) == nullptr, "joined");
    Expect(outcome, DTRUN_FAILED_PRECONDITION, "the program has initialised MPI with MPI_THREAD_SINGLE");
  }
  UseMpi(story);
  MPI_Finalize();
}

// MPI for one thread at a time, and two communicators that two threads use in their own order.
void Serialized(Story& story) {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  Expect(level == MPI_THREAD_SERIALIZED, "this MPI has another level");
  {
    const Subject subject = story.Load();
    Outcome outcome;
    const auto first = story.Join(subject, &outcome);
    Expect(first != nullptr, outcome.text);
    std::vector<int> all(static_cast<std::size_t>(story.size));
    std::iota(all.begin(), all.end(), 0);
    const auto second = first->Further("second", all);
    Expect(second != nullptr, "no second communicator");
    std::vector<std::thread> threads;
    for (Rank* const rank : {first.get(), second.get()}) {
      threads.emplace_back([rank] {
        for (int round = 0; round < 20; ++round) Sum(*rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
    float value = static_cast<float>(story.rank);
    const auto send = first->Start(SendOp(&value, 1, DTRUN_FLOAT32, 1 - story.rank, 7));
    float got = -1;
    Expect(first->Do(RecvOp(&got, 1, DTRUN_FLOAT32, 1 - story.rank, 7)).ok() && send->Wait().ok(), "message");
    Expect(got == static_cast<float>(1 - story.rank), "the message is wrong");
  }
  UseMpi(story);
  MPI_Finalize();
}

// The last rank is killed with a large operation under way.
void Killed(Story& story) {
  const Subject subject = story.Load();
  Outcome outcome;
  const auto rank = story.Join(subject, &outcome);
  Expect(rank != nullptr, outcome.text);
  Sum(*rank);
  std::vector<float> data(16 << 20, 1);
  const auto pending =
      rank->Start(AllreduceOp(data.data(), data.data(), data.size(), DTRUN_FLOAT32, DTRUN_SUM), &outcome);
  if (story.rank == story.size - 1) raise(SIGKILL);
  if (pending) outcome = pending->Wait();
  if (outcome.ok()) outcome = rank->Barrier();
  Expect(outcome, DTRUN_REMOTE_FAILURE, "rank " + std::to_string(story.size - 1));
  std::cout << "rank " + std::to_string(story.rank) + " survived\n" << std::flush;
}

bool Takes(const Subject& subject, std::int32_t kind, std::int32_t dtype = DTRUN_FLOAT32,
           std::int32_t reduce = 0) {
  dtrun_support_query query;
  DTRUN_INIT(query);
  query.kind = kind;
  query.dtype = dtype;
  query.reduce = reduce;
  query.device_kind = DTRUN_DEVICE_CUDA;
  return subject.table().query_support(subject.instance(), &query, nullptr) == DTRUN_OK;
}

// An MPI that says it takes memory of CUDA; what is moved here is the host's.
void CudaAware(Story& story) {
  const std::uint64_t host = 1u << DTRUN_DEVICE_HOST;
  Expect(story.Load().Caps().device_kinds == host, "claimed, although MPI says no");
  takes_cuda = 1;
  Expect(Subject({story.plugin, {{"device_memory", "staged"}}}).Caps().device_kinds == host,
         "claimed, although the user said no");
  Expect(Subject({story.plugin, {{"coll_sm", "on"}}}).Caps().device_kinds == host, "claimed with coll_sm");
  const Subject subject = story.Load();
  Expect(subject.Caps().device_kinds == (host | 1u << DTRUN_DEVICE_CUDA), "not claimed");
  Expect((subject.Caps().features & DTRUN_CAP_NO_STREAM) != 0, "needs a stream");
  Expect(subject.LaunchInfo(1).facts.at("device").rfind("direct", 0) == 0, "the fact says something else");
  for (const std::int32_t kind : {DTRUN_SEND, DTRUN_RECV, DTRUN_BROADCAST, DTRUN_ALLGATHER, DTRUN_ALLTOALL,
                                  DTRUN_GATHER, DTRUN_SCATTER})
    Expect(Takes(subject, kind), "refuses kind " + std::to_string(kind));
  for (const std::int32_t kind : {DTRUN_ALLGATHERV, DTRUN_ALLTOALLV, DTRUN_GATHERV, DTRUN_SCATTERV})
    Expect(!Takes(subject, kind), "takes kind " + std::to_string(kind));
  Expect(!Takes(subject, DTRUN_REDUCE_SCATTER, DTRUN_FLOAT32, DTRUN_SUM), "takes reduce_scatter");
  Expect(Takes(subject, DTRUN_ALLREDUCE, DTRUN_FLOAT32, DTRUN_SUM), "refuses a sum of float32");
  Expect(Takes(subject, DTRUN_REDUCE, DTRUN_INT32, DTRUN_MAX), "refuses a maximum of int32");
  Expect(!Takes(subject, DTRUN_ALLREDUCE, DTRUN_BFLOAT16, DTRUN_SUM), "takes a sum of bfloat16");
  Expect(!Takes(subject, DTRUN_ALLREDUCE, DTRUN_FLOAT32, DTRUN_MAX), "takes a maximum of float32");
  Expect(!Takes(subject, DTRUN_ALLREDUCE, DTRUN_FLOAT32, DTRUN_AVG), "takes an average");
  Outcome outcome;
  const auto rank = story.Join(subject, &outcome);
  Expect(rank != nullptr, outcome.text);
  Sum(*rank);
}

// Ranks that share no memory have nothing but MPI, which keeps the thread for ever.
void Stuck(Story& story) {
  const auto entry = reinterpret_cast<dtrun_plugin_entry>(
      dlsym(dlopen(story.plugin.c_str(), RTLD_NOW | RTLD_LOCAL), DTRUN_PLUGIN_ENTRY_SYMBOL));
  const dtrun_plugin* plugin = nullptr;
  dtrun_instance* instance = nullptr;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  Expect(entry(Host(), &plugin, &error) == DTRUN_OK, error.message);
  const auto options = MakeOptions(*plugin, {});
  Expect(dtrun::sdk::InitPlugin(*plugin, Host(), options.get(), &instance, &error) == DTRUN_OK,
         error.message);
  const dtrun_backend& table = *plugin->backend;
  dtrun_comm_params params;
  DTRUN_INIT(params);
  params.rank = story.rank;
  params.size = story.size;
  params.host_count = 2;
  params.name = {"world", 5};
  params.kv = &story.kv;
  params.timeout_ns = std::chrono::nanoseconds(seconds(30)).count();
  dtrun_backend_comm* comm = nullptr;
  Expect(table.comm_create(instance, &params, &comm, &error) == DTRUN_OK, error.message);
  dtrun_op op = MakeOp(DTRUN_BARRIER);
  op.flags = DTRUN_OP_BLOCKING;
  op.timeout_ns = std::chrono::nanoseconds(seconds(1)).count();
  dtrun_request* request = nullptr;
  if (story.rank == 0) {
    op.sequence = 1;
    Expect(table.enqueue(comm, &op, nullptr, &request, &error) == DTRUN_PENDING, error.message);
    const Outcome outcome{table.req_wait_host(request, -1, &error), -1, error.message};
    Expect(outcome, DTRUN_TIMEOUT, "barrier 1 on 'world' did not end within 1 s; the call of MPI");
    table.req_release(request);
    Expect(table.enqueue(comm, &op, nullptr, &request, &error) == DTRUN_TIMEOUT, "a later call was taken");
    story.kv.Set("timed out", "");
  } else {
    story.kv.WaitFor({"timed out"}, std::chrono::steady_clock::now() + kPatience);
  }
  table.comm_destroy(comm);
  plugin->shutdown(instance);
  std::cout << "gone on" << std::endl;
}

}  // namespace
}  // namespace dtrun::conformance

int main(int, char** arguments) {
  using namespace dtrun::conformance;
  const std::map<std::string, void (*)(Story&)> stories = {
      {"alone", Alone},          {"initialised", Initialised}, {"single", InitialisedForOneThread},
      {"stuck", Stuck},          {"cuda_aware", CudaAware},    {"killed", Killed},
      {"serialized", Serialized}};
  try {
    Story story{.plugin = arguments[2]};
    stories.at(arguments[1])(story);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "scenario " << arguments[1] << ": " << error.what() << std::endl;
    return 1;
  }
}
