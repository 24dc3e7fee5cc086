#include "backend_suite.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "own_process.h"
#include "suite.h"

namespace dtrun::conformance {
namespace {

// The rules of each case, by its name.
std::map<std::string, std::string>& KnownCases() {
  static std::map<std::string, std::string> rules;
  return rules;
}

// The only instance of a launched process: its library cannot be started twice.
class Launched final : public testing::Environment {
 public:
  explicit Launched(BackendUnderTest backend) : backend_(std::move(backend)) {}
  Subject& subject() {
    if (subject_ == nullptr) subject_ = std::make_unique<Subject>(backend_);
    return *subject_;
  }
  void TearDown() override { subject_.reset(); }

 private:
  const BackendUnderTest backend_;
  std::unique_ptr<Subject> subject_;
};

class Case : public testing::Test {
 public:
  Case(BackendUnderTest plugin, std::string name, std::function<void()> body)
      : plugin_(std::move(plugin)), name_(std::move(name)), body_(std::move(body)) {}

  void TestBody() override {
    RecordProperty("rule", RulesOf(name_));
    if (const auto skip = plugin_.skips.find(name_); skip != plugin_.skips.end()) {
      GTEST_SKIP() << skip->second;
    }
    try {
      body_();
      EndIfCopied();
      const int copies = CopiesThatEnded();
      EXPECT_EQ(copies, 0) << "copies of this process that have ended: the plugin forks without exec (T8)";
    } catch (const std::exception& error) {
      EndIfCopied();
      FAIL() << error.what();
    }
  }

 private:
  const BackendUnderTest plugin_;
  const std::string name_;
  const std::function<void()> body_;
};

// Skips the case when it played nothing because of the number of ranks.
void RunOn(Subject& subject, const BackendUnderTest& backend, const std::string& name, const Body& body) {
  subject.EnterCase(name);
  body(subject);
  int wanted = 0;
  if (subject.TakePlayed(&wanted) || wanted == 0 || testing::Test::IsSkipped()) return;
  if (backend.most_ranks > 0 && wanted > backend.most_ranks) {
    GTEST_SKIP() << "needs " << wanted << " ranks, of which " << backend.most_ranks << " are allowed";
  }
  GTEST_SKIP() << "needs " << wanted << " ranks; the launcher started " << backend.process.size;
}

Launched* EnvironmentOf(const BackendUnderTest& backend) {
  static Launched* launched = nullptr;
  if (backend.process.size == 0) return nullptr;
  if (launched == nullptr) {
    launched = new Launched(backend);  // GoogleTest owns it
    testing::AddGlobalTestEnvironment(launched);
  }
  return launched;
}

int NumberIn(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > 1'000'000) {
    throw std::invalid_argument(std::string(variable) + " is '" + text + "', must be a number");
  }
  return static_cast<int>(value);
}

}  // namespace

LaunchedProcess ProcessFromEnvironment(const char* rank_variable, const char* size_variable,
                                       const char* folder_variable) {
  LaunchedProcess process;
  process.rank = NumberIn(rank_variable, 0);
  process.size = NumberIn(size_variable, 1);
  if (process.rank >= process.size) {
    throw std::invalid_argument(std::string(rank_variable) + " is not below " + size_variable);
  }
  const char* const folder = std::getenv(folder_variable);
  if (folder != nullptr) process.folder = folder;
  if (process.size > 1 && process.folder.empty()) {
    throw std::invalid_argument(std::string(folder_variable) +
                                " must name an empty folder that all ranks see");
  }
  return process;
}

void AddCase(const std::string& suite, const std::string& name, const std::string& rule,
             const BackendUnderTest& backend, const Body& body) {
  Launched* const launched = EnvironmentOf(backend);
  const std::function<void()> run = [=, full = suite + "." + name] {
    if (launched != nullptr) return RunOn(launched->subject(), backend, full, body);
    Subject subject(backend);
    RunOn(subject, backend, full, body);
  };
  AddCase(suite, name, rule, backend, run);
}

void AddCase(const std::string& suite, const std::string& name, const std::string& rule,
             const BackendUnderTest& plugin, const std::function<void()>& body) {
  KnownCases()[suite + "." + name] = rule;
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> Case* { return new Case(plugin, suite + "." + name, body); });
}

std::string RulesOf(const std::string& name) {
  const auto known = KnownCases().find(name);
  return known == KnownCases().end() ? std::string() : known->second;
}

namespace {

void CheckSkips(const BackendUnderTest& plugin) {
  for (const auto& [name, why] : plugin.skips) {
    if (KnownCases().count(name) == 0) throw std::invalid_argument("there is no case '" + name + "' to skip");
  }
}

}  // namespace

bool RegisterBackendSuite(const BackendUnderTest& backend) {
  AddLoadCases(backend);
  AddPluginCases(backend);
  AddMemoryCases(backend);
  AddStructCases(backend);
  AddFlagCases(backend);
  AddCapabilityCases(backend);
  AddCallerCases(backend);
  AddCollectiveCases(backend);
  AddAccuracyCases(backend);
  AddExactCases(backend);
  AddSizeCases(backend);
  AddRandomCases(backend);
  AddRequestCases(backend);
  AddWaitCases(backend);
  AddStoppedCases(backend);
  AddPointToPointCases(backend);
  AddDeliveryCases(backend);
  AddCommunicatorCases(backend);
  AddFailureCases(backend);
  AddPeerCases(backend);
  AddFaultCases(backend);
  AddPartCases(backend);
  AddTraceCases(backend);
  CheckSkips(backend);
  return true;
}

bool RegisterDeviceSuite(const BackendUnderTest& device) {
  AddLoadCases(device);
  AddDeviceCases(device);
  AddStreamCases(device);
  CheckSkips(device);
  return true;
}

bool RegisterLauncherSuite(const BackendUnderTest& launcher) {
  AddLoadCases(launcher);
  AddLauncherCases(launcher);
  AddHostsCases(launcher);
  CheckSkips(launcher);
  return true;
}

}  // namespace dtrun::conformance
