// The plugin itself: its table, what it reports, what it leaves alone.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <map>

#include "suite.h"

namespace dtrun::conformance {
namespace {

void TheTableIsComplete(const Subject& subject) {
  const dtrun_plugin& plugin = subject.plugin();
  EXPECT_EQ(plugin.magic, DTRUN_PLUGIN_MAGIC);
  EXPECT_EQ(plugin.kind, DTRUN_KIND_BACKEND);
  EXPECT_GE(plugin.struct_size, sizeof(dtrun_plugin));
  for (const char* text : {plugin.name, plugin.version, plugin.vendor, plugin.license, plugin.summary}) {
    ASSERT_NE(text, nullptr);
    EXPECT_NE(*text, '\0');
  }
  const dtrun_backend& table = subject.table();
  EXPECT_NE(table.query_caps, nullptr);
  EXPECT_NE(table.comm_create, nullptr);
  EXPECT_NE(table.comm_destroy, nullptr);
  EXPECT_NE(table.enqueue, nullptr);
  EXPECT_NE(table.req_test, nullptr);
  EXPECT_NE(table.req_wait_host, nullptr);
  EXPECT_NE(table.req_release, nullptr);
  EXPECT_EQ(table.comm_abort != nullptr, (subject.Caps().flags & DTRUN_CAP_ABORT) != 0);
}

// What the rest of the suite calls without asking.
void TheBasicsAreThere(const Subject& subject) {
  const dtrun_backend_caps caps = subject.Caps();
  for (int op = DTRUN_ALLREDUCE; op < DTRUN_OP_COUNT; ++op)
    EXPECT_NE(caps.ops >> op & 1, 0u) << "operation " << op;
  for (int dtype = DTRUN_FLOAT16; dtype < DTRUN_DTYPE_COUNT; ++dtype) {
    EXPECT_NE(caps.dtypes >> dtype & 1, 0u) << "element type " << dtype;
  }
  for (int reduce = DTRUN_SUM; reduce < DTRUN_REDUCE_COUNT; ++reduce) {
    EXPECT_NE(caps.reduces >> reduce & 1, 0u) << "reduction " << reduce;
  }
}

// Signal dispositions and this thread's mask.
std::vector<std::string> SignalState() {
  std::vector<std::string> state;
  for (int number = 1; number < 32; ++number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    state.push_back(std::to_string(number) + (action.sa_handler == SIG_DFL   ? " default"
                                              : action.sa_handler == SIG_IGN ? " ignored"
                                                                             : " handled"));
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int number = 1; number < 32; ++number) {
    if (sigismember(&mask, number) == 1) state.push_back(std::to_string(number) + " blocked");
  }
  return state;
}

void SignalsAreLeftAlone(const Subject& subject) {
  subject.Play(2, [](Rank& rank) {
    const auto before = SignalState();
    float value = 1;
    EXPECT_TRUE(rank.Do(AllreduceOp(&value, &value, 1, DTRUN_FLOAT32, DTRUN_SUM)).ok());
    const Outcome outcome = rank.rank() == 0 ? rank.Do(SendOp(&value, 1, DTRUN_FLOAT32, 1, 0))
                                             : rank.Do(RecvOp(&value, 1, DTRUN_FLOAT32, 0, 0));
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(SignalState(), before);
  });
}

void CommunicatorsComeAndGo(const Subject& subject) {
  for (int round = 0; round < 10; ++round) {
    subject.Play(2, [](Rank& rank) { EXPECT_TRUE(rank.Barrier().ok()); });
  }
}

}  // namespace

void AddPluginCases(const BackendUnderTest& backend) {
  AddCase("Plugin", "HasACompleteTable", backend, TheTableIsComplete);
  AddCase("Plugin", "CanDoTheBasics", backend, TheBasicsAreThere);
  AddCase("Plugin", "LeavesSignalsAlone", backend, SignalsAreLeftAlone);
  AddCase("Plugin", "MakesCommunicatorsAgainAndAgain", backend, CommunicatorsComeAndGo);
}

}  // namespace dtrun::conformance
