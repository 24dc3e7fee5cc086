#include "launcher_subject.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "dtrun/plugin/failure.hpp"
#include "guard.h"
#include "load.h"
#include "own_process.h"
#include "text_check.h"

namespace dtrun::conformance {
namespace {

const char* OfThisProcess(const dtrun_job*, const char* name) { return std::getenv(name); }

// "" and a problem when the pointer is NULL.
std::string Given(const char* text, const std::string& what, Plan* plan) {
  if (text != nullptr) return text;
  plan->problems.push_back(what + " is NULL");
  return {};
}

void CheckFlags(std::uint32_t flags, std::uint32_t known, const std::string& of, Plan* plan) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND & ~known) != 0)
    plan->problems.push_back(of + " has flags that no host understands");
}

// Of a struct that the plugin has made, with the size of its headers (S1). `exact`: these.
void CheckSize(std::size_t says, std::size_t has, const std::string& of, Plan* plan) {
  if (plan->exact_sizes && says != has)
    plan->problems.push_back(of + " says that it has " + std::to_string(says) + " bytes, and has " +
                             std::to_string(has) + " (S1)");
}

dtrun_status TakeProcess(void* context, const dtrun_process* given, dtrun_error*) {
  Plan* const plan = static_cast<Plan*>(context);
  CheckSize(given->struct_size, sizeof *given, "a dtrun_process", plan);
  if (plan->exact_sizes && given->env_count > 0 && given->env != nullptr)
    CheckSize(given->env->struct_size, sizeof *given->env, "a dtrun_env_entry", plan);
  const dtrun_process process = sdk::internal::ReadStruct(given);
  PlannedProcess copy{process.host_index, process.rank, process.local_rank, process.rank_count, {}, {}};
  const std::string who = "the process of rank " + std::to_string(process.rank);
  CheckFlags(process.flags, 0, who, plan);
  const bool own_program = process.argv != nullptr;
  if (own_program && (process.argc == 0 || (process.argv[0] != nullptr && process.argv[0][0] == '\0')))
    plan->problems.push_back(who + " has no program: argv is there and its first word is not");
  for (std::uint64_t i = 0; process.argv != nullptr && i < process.argc; ++i)
    copy.argv.push_back(Given(process.argv[i], who + ": argument " + std::to_string(i), plan));
  const auto* raw = reinterpret_cast<const char*>(process.env);
  for (std::uint64_t i = 0; i < process.env_count; ++i) {
    const dtrun_env_entry entry = sdk::internal::ReadStruct(
        reinterpret_cast<const dtrun_env_entry*>(raw + i * process.env->struct_size));
    const bool unset = (entry.flags & DTRUN_ENV_UNSET) != 0;
    const std::string name = Given(entry.name, who + ": the name of variable " + std::to_string(i), plan);
    copy.env.emplace_back(
        name, unset ? "(unset)" : Given(entry.value, who + ": the value of '" + name + "'", plan));
    CheckFlags(entry.flags, DTRUN_ENV_UNSET, who + ": variable '" + name + "'", plan);
  }
  plan->processes.push_back(std::move(copy));
  return DTRUN_OK;
}

dtrun_status TakeNote(void* context, dtrun_string text, dtrun_error*) {
  Plan* const plan = static_cast<Plan*>(context);
  if (const std::string wrong = TextProblem(text); !wrong.empty())
    plan->problems.push_back("a note " + wrong + " (S15)");
  plan->notes.emplace_back(text.data == nullptr ? "" : text.data, text.data == nullptr ? 0 : text.size);
  return DTRUN_OK;
}

}  // namespace

std::string PlannedProcess::Text() const {
  std::string text = "host " + std::to_string(host_index) + ", rank " + std::to_string(rank) +
                     ", local rank " + std::to_string(local_rank) + ", " + std::to_string(rank_count) +
                     " ranks\n";
  for (const std::string& word : argv) text += "  " + word + "\n";
  for (const auto& [name, value] : env) text += "  " + name + "=" + value + "\n";
  return text;
}

std::string Plan::Text() const {
  std::string text = status == DTRUN_OK ? "" : "failed: " + message + "\n";
  for (const PlannedProcess& process : processes) text += process.Text();
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

TestJob::TestJob(const std::vector<int>& ranks) : ranks_(ranks) {
  DTRUN_INIT(job_);
  int first = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) names_.push_back("host" + std::to_string(i));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    dtrun_job_host host;
    DTRUN_INIT(host);
    host.name = names_[i].c_str();
    host.first_rank = std::exchange(first, first + ranks[i]);
    host.local_size = ranks[i];
    host.cores = 8;
    hosts_.push_back(host);
  }
  argv_ = {"./train", "--name", "a job with 'quotes' and ${RANK}", ""};
  job_.name = "conformance";
  job_.argv = argv_.data();
  job_.argc = argv_.size();
  job_.cwd = "/tmp";
  job_.host_count = ranks.size();
  job_.world_size = first;
  job_.master_addr = "192.0.2.1";
  job_.master_port = "(port)";
  job_.inherited = &OfThisProcess;
  job_.run_dir = "(run_dir)";
  job_.generation = "(generation)";
  job_.program = "/usr/bin/dtrun";
  job_.bind = "none";
  SetStride(sizeof(dtrun_job_host));
}

void TestJob::SetStride(std::size_t bytes) {
  laid_.assign(bytes * hosts_.size(), GuardedMemory::kGarbage);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].struct_size = static_cast<std::uint32_t>(bytes);
    std::memcpy(laid_.data() + i * bytes, &hosts_[i], std::min(bytes, sizeof hosts_[i]));
  }
  job_.hosts = reinterpret_cast<const dtrun_job_host*>(laid_.data());
}

void TestJob::SetFlagsOfHosts(std::uint32_t flags) {
  for (dtrun_job_host& host : hosts_) host.flags = flags;
  SetStride(sizeof(dtrun_job_host));
}

LauncherSubject::LauncherSubject(const BackendUnderTest& under_test, OptionsOf options)
    : plugin_(LoadPlugin(under_test.plugin, DTRUN_KIND_LAUNCHER)) {
  if (plugin_->launcher == nullptr) throw std::runtime_error("the table has no launcher");
  table_ = sdk::internal::ReadStruct(plugin_->launcher);
  options_ =
      options == OptionsOf::kTest ? MakeOptions(*plugin_, under_test.options) : DefaultOptions(*plugin_);
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_status status =
      sdk::InitPlugin(*plugin_, Host(DTRUN_KIND_LAUNCHER), options_.get(), &instance_, &error);
  EndIfCopied();
  if (status != DTRUN_OK) throw std::runtime_error(std::string("init: ") + error.message);
  if (instance_ == nullptr) throw std::runtime_error("init returned DTRUN_OK and left *out untouched");
}

LauncherSubject::~LauncherSubject() {
  if (instance_ != nullptr) plugin_->shutdown(instance_);
  EndIfCopied();
}

dtrun_status LauncherSubject::Call(const dtrun_job* job, const dtrun_plan_sink* sink,
                                   dtrun_error* error) const {
  const dtrun_status status = table_.plan(instance_, job, sink, error);
  EndIfCopied();
  if (error != nullptr) CheckError("plan", status, *error);
  EXPECT_TRUE(status >= DTRUN_OK && status <= DTRUN_MISMATCH && status != DTRUN_PENDING)
      << "plan returned status " << status << " (E2, E8)";
  return status;
}

Plan LauncherSubject::PlanOf(const dtrun_job& job) const {
  Plan plan;
  plan.exact_sizes = HasTheseHeaders();
  const dtrun_plan_sink sink = CopyInto(&plan);
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  plan.status = Call(&job, &sink, &error);
  plan.message = error.message;
  EXPECT_TRUE(plan.status == DTRUN_OK || !plan.message.empty()) << "plan failed without a text (L6)";
  return plan;
}

bool LauncherSubject::HasTheseHeaders() const {
  return plugin_->abi_major == DTRUN_ABI_MAJOR && plugin_->abi_minor_built == DTRUN_ABI_MINOR;
}

void CheckError(const char* member, dtrun_status status, const dtrun_error& error) {
  if (status == DTRUN_OK)
    EXPECT_TRUE(error.code == DTRUN_OK && error.message[0] == '\0')
        << member << " did not fail and filled the error (E3)";
  else
    EXPECT_EQ(error.code, status) << member
                                  << ": the code of the error is not the status that was returned (E3)";
}

dtrun_plan_sink CopyInto(Plan* plan) {
  dtrun_plan_sink sink;
  DTRUN_INIT(sink);
  sink.context = plan;
  sink.process = &TakeProcess;
  sink.note = &TakeNote;
  return sink;
}

}  // namespace dtrun::conformance
