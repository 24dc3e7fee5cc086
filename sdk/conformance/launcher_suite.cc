// What every launcher that plans must do: plans that are complete, equal every time, and made of valid texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "guard.h"
#include "launcher_subject.h"
#include "load.h"
#include "process_state.h"
#include "suite.h"
#include "text_check.h"
#include "written.h"

namespace dtrun::conformance {
namespace {

using Under = BackendUnderTest;

const std::vector<std::vector<int>> kJobs = {{1}, {4}, {2, 2}, {3, 1, 2}};

std::string NameOf(const std::vector<int>& ranks) {
  std::string text = "a job of ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : " + ") + std::to_string(ranks[i]);
  return text + (ranks == std::vector<int>{1} ? " rank" : " ranks");
}

// Plans each of kJobs. A launcher that plans nothing, or says why it cannot plan here, has no case.
template <class Body>
void ForEachJob(const Under& under_test, Body&& body) {
  const LauncherSubject subject(under_test);
  if (!subject.Plans()) GTEST_SKIP() << "the launcher plans nothing";
  for (const std::vector<int>& ranks : kJobs) {
    SCOPED_TRACE(NameOf(ranks));
    const TestJob job(ranks);
    const Plan plan = subject.PlanOf(job.job());
    if (plan.status == DTRUN_FAILED_PRECONDITION)
      GTEST_SKIP() << "the launcher cannot plan here: " << plan.message;
    ASSERT_EQ(plan.status, DTRUN_OK) << plan.message;
    body(subject, job, plan);
    if (testing::Test::HasFailure()) return;  // what follows would repeat it
  }
}

void EveryRankIsPlannedOnce(const Under& under_test) {
  ForEachJob(under_test, [](const LauncherSubject&, const TestJob& job, const Plan& plan) {
    std::vector<int> times(static_cast<std::size_t>(job.job().world_size), 0);
    for (const PlannedProcess& process : plan.processes) {
      ASSERT_GE(process.rank_count, 1) << process.Text();
      ASSERT_TRUE(process.host_index >= 0 && process.host_index < static_cast<int>(job.ranks().size()))
          << process.Text();
      const int first = std::accumulate(job.ranks().begin(), job.ranks().begin() + process.host_index, 0);
      EXPECT_EQ(process.local_rank, process.rank - first) << process.Text();
      EXPECT_LE(process.local_rank + process.rank_count,
                job.ranks()[static_cast<std::size_t>(process.host_index)])
          << "ranks of another host: " << process.Text();
      for (int rank = process.rank; rank < process.rank + process.rank_count; ++rank) {
        ASSERT_TRUE(rank >= 0 && rank < job.job().world_size) << process.Text();
        ++times[static_cast<std::size_t>(rank)];
      }
    }
    for (std::size_t rank = 0; rank < times.size(); ++rank)
      EXPECT_EQ(times[rank], 1) << "times that rank " << rank << " is planned";
  });
}

// Again in the same instance, in another one, in another folder, beside an unrelated variable.
void PlansAreEqual(const Under& under_test) {
  const LauncherSubject other(under_test);
  ForEachJob(under_test, [&](const LauncherSubject& subject, const TestJob& job, const Plan& plan) {
    EXPECT_EQ(subject.PlanOf(job.job()).Text(), plan.Text()) << "the second time";
    EXPECT_EQ(other.PlanOf(job.job()).Text(), plan.Text()) << "in another instance";
    const std::filesystem::path folder = std::filesystem::current_path();
    std::filesystem::current_path("/");
    const std::string elsewhere = other.PlanOf(job.job()).Text();
    std::filesystem::current_path(folder);
    EXPECT_EQ(elsewhere, plan.Text()) << "in another working folder";
    EXPECT_EQ(InAnotherProcess([&] { return subject.PlanOf(job.job()).Text(); }), plan.Text())
        << "in another process, with another HOME";
  });
}

// The first plan of this process too, since some change a thing once. A library may stay open.
void PlanningTouchesNothing(const Under& under_test) {
  const LauncherSubject first(under_test);
  if (!first.Plans()) GTEST_SKIP() << "the launcher plans nothing";
  const TestJob one({1});
  const ProcessState fresh = ProcessState::Now();
  first.PlanOf(one.job());
  EXPECT_EQ(Changes(fresh, ProcessState::Now(), false), "") << "by the first plan";
  ForEachJob(under_test, [](const LauncherSubject& subject, const TestJob& job, const Plan&) {
    const ProcessState before = ProcessState::Now();
    subject.PlanOf(job.job());
    EXPECT_EQ(Changes(before, ProcessState::Settled(before.threads), true), "");
  });
}

// What was written is seen in the bytes that this process has handed to the system, and in its folders.
void PlanningWritesNothing(const Under& under_test) {
  const LauncherSubject subject(under_test);
  if (!subject.Plans()) GTEST_SKIP() << "the launcher plans nothing";
  const TestJob job({2, 2});
  const EmptyFolder folder;
  const std::uint64_t logged = LoggedBytes();
  const std::optional<std::uint64_t> before = WrittenBytes();
  subject.PlanOf(job.job());
  const std::optional<std::uint64_t> after = WrittenBytes();
  if (before && after) {
    EXPECT_EQ(*after - LoggedBytes(), *before - logged)
        << "bytes that this process has written: plan is pure, and reports by note "
           "and error";
  }
  EXPECT_EQ(folder.Contents(), "") << "files of the plugin in its working folder, HOME or TMPDIR";
}

void TextsAreValid(const Under& under_test) {
  ForEachJob(under_test, [](const LauncherSubject&, const TestJob&, const Plan& plan) {
    for (const std::string& problem : plan.problems) ADD_FAILURE() << problem;
    EXPECT_TRUE(IsUtf8(plan.Text())) << "the plan is no UTF-8";
    for (const PlannedProcess& process : plan.processes) {
      std::set<std::string> names;
      for (const auto& [name, value] : process.env) {
        EXPECT_TRUE(!name.empty() && name.find('=') == name.npos)
            << "rank " << process.rank << " has a variable '" << name << "'";
        EXPECT_TRUE(names.insert(name).second) << "rank " << process.rank << " has '" << name << "' twice";
      }
    }
  });
}

// The first process is refused: nothing may follow it, and the refusal comes back.
void ARefusalComesBack(const Under& under_test) {
  ForEachJob(under_test, [](const LauncherSubject& subject, const TestJob& job, const Plan&) {
    int calls = 0;
    dtrun_plan_sink sink;
    DTRUN_INIT(sink);
    sink.context = &calls;
    sink.process = [](void* context, const dtrun_process*, dtrun_error* error) {
      ++*static_cast<int*>(context);
      return dtrun_error_set(error, DTRUN_OUT_OF_MEMORY, -1, "no room for a process");
    };
    sink.note = [](void*, dtrun_string, dtrun_error*) -> dtrun_status { return DTRUN_OK; };
    for (const std::size_t bytes : Sizes<dtrun_error>()) {
      dtrun_error empty;
      DTRUN_ERROR_INIT(empty);
      const Guarded<dtrun_error> error("dtrun_error", empty, bytes);
      calls = 0;
      EXPECT_EQ(subject.Call(&job.job(), &sink, error.get()), DTRUN_OUT_OF_MEMORY);
      EXPECT_EQ(calls, 1) << "calls of the sink; its failure is final";
      EXPECT_EQ(error.Damage(), "") << "a dtrun_error of " << bytes << " bytes";
      EXPECT_EQ(error.Read().code, DTRUN_OUT_OF_MEMORY);
      EXPECT_STREQ(error.get()->message, "no room for a process");
    }
    EXPECT_EQ(subject.Call(&job.job(), &sink, nullptr), DTRUN_OUT_OF_MEMORY) << "without a dtrun_error";
  });
}

void LauncherStructsOfAnotherSizeFit(const Under& under_test) {
  ForEachJob(under_test, [](const LauncherSubject& subject, const TestJob& job, const Plan& plan) {
    for (const std::size_t bytes : Sizes<dtrun_job>()) {
      SCOPED_TRACE("a dtrun_job of " + std::to_string(bytes) + " bytes");
      const Guarded<dtrun_job> guarded("dtrun_job", job.job(), bytes);
      const Plan same = subject.PlanOf(*guarded.get());
      if (bytes >= sizeof(dtrun_job)) {
        EXPECT_EQ(same.Text(), plan.Text());
      }
      EXPECT_EQ(guarded.Writes(), "");
    }
    for (const std::size_t bytes : Sizes<dtrun_job_host>()) {
      SCOPED_TRACE("dtrun_job_hosts of " + std::to_string(bytes) + " bytes");
      TestJob other(job.ranks());
      other.SetStride(bytes);
      const Plan same = subject.PlanOf(other.job());
      if (bytes >= sizeof(dtrun_job_host)) {
        EXPECT_EQ(same.Text(), plan.Text());
      }
    }
    for (const std::size_t bytes : Sizes<dtrun_plan_sink>()) {
      SCOPED_TRACE("a dtrun_plan_sink of " + std::to_string(bytes) + " bytes");
      Plan same;
      const Guarded<dtrun_plan_sink> sink("dtrun_plan_sink", CopyInto(&same), bytes);
      EXPECT_EQ(subject.Call(&job.job(), sink.get(), nullptr), DTRUN_OK);
      EXPECT_EQ(same.processes.size(), plan.processes.size());
      EXPECT_EQ(sink.Writes(), "");
    }
  });
}

void JobsWithStrangeFlagsAreRefused(const Under& under_test) {
  ForEachJob(under_test, [](const LauncherSubject& subject, const TestJob& job, const Plan& plan) {
    dtrun_job strange = job.job();
    strange.flags = 1u << 30;
    const Plan refused = subject.PlanOf(strange);
    EXPECT_EQ(refused.status, DTRUN_UNSUPPORTED) << "with bit 30: " << refused.message;
    EXPECT_TRUE(refused.processes.empty());
    strange.flags = 1u << 14;  // a hint
    EXPECT_EQ(subject.PlanOf(strange).Text(), plan.Text()) << "with bit 14";
    TestJob other(job.ranks());
    other.SetFlagsOfHosts(1u << 30);
    EXPECT_EQ(subject.PlanOf(other.job()).status, DTRUN_UNSUPPORTED) << "with bit 30 in a dtrun_job_host";
    other.SetFlagsOfHosts(1u << 14);
    EXPECT_EQ(subject.PlanOf(other.job()).Text(), plan.Text()) << "with bit 14 in a dtrun_job_host";
    for (const auto& [flags, status] : {std::pair(1u << 30, DTRUN_UNSUPPORTED), {1u << 14, DTRUN_OK}}) {
      Plan same;
      dtrun_plan_sink sink = CopyInto(&same);
      sink.flags = flags;
      EXPECT_EQ(subject.Call(&job.job(), &sink, nullptr), status)
          << "with bit " << (status == DTRUN_OK ? 14 : 30) << " in a dtrun_plan_sink";
    }
  });
}

}  // namespace

void AddLauncherCases(const BackendUnderTest& launcher) {
  AddCase("Launcher", "PlansEveryRankOnce", "L2", launcher, [=] { EveryRankIsPlannedOnce(launcher); });
  AddCase("Launcher", "PlansTheSameEachTime", "L1", launcher, [=] { PlansAreEqual(launcher); });
  AddCase("Launcher", "TouchesNothingWhenItPlans", "L1, T7", launcher,
          [=] { PlanningTouchesNothing(launcher); });
  AddCase("Launcher", "WritesNothingWhenItPlans", "L1, L5", launcher,
          [=] { PlanningWritesNothing(launcher); });
  AddCase("Launcher", "GivesValidTexts", "L3, S1, S15", launcher, [=] { TextsAreValid(launcher); });
  AddCase("Launcher", "PassesOnARefusal", "L6, B25, E3, E4", launcher, [=] { ARefusalComesBack(launcher); });
  AddCase("Launcher", "TakesStructsOfAnotherSize", "S2, S10, S11", launcher,
          [=] { LauncherStructsOfAnotherSizeFit(launcher); });
  AddCase("Launcher", "RefusesFlagsThatMustBeUnderstood", "S6", launcher,
          [=] { JobsWithStrangeFlagsAreRefused(launcher); });
}

}  // namespace dtrun::conformance
