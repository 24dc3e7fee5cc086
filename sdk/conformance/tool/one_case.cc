#include "one_case.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <regex>
#include <string_view>
#include <vector>

#include "case_process.h"
#include "crash_stack.h"
#include "record.h"
#include "sdk/conformance/guard.h"
#include "sdk/conformance/host.h"
#include "sdk/conformance/load.h"
#include "sdk/conformance/own_process.h"
#include "sdk/conformance/rank_watch.h"
#include "sdk/conformance/stack.h"
#include "under_test.h"

namespace dtrun::conformance::tool {
namespace {

namespace fs = std::filesystem;

const RecordWriter* record = nullptr;

constexpr std::size_t kMessageBytes = 16 * 1024;

// Texts of a plugin may have any length, and std::regex needs stack for each character.
std::string Shortened(const std::string& text) {
  return text.size() <= kMessageBytes ? text : text.substr(0, kMessageBytes) + " ...";
}

// Paths of the source tree mean nothing to users who have only the program.
std::string WithoutFolders(const std::string& text) {
  static const std::regex kPath("/[^ :\n]*/sdk/conformance/");
  return std::regex_replace(text, kPath, "");
}

class Recorder final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    const std::string message = Shortened(result.message());
    if (result.skipped()) return record->Skip(message.substr(0, message.find("\nGoogle Test trace:")));
    if (!result.failed()) return;
    std::string text = WithoutFolders(message);
    if (result.file_name() != nullptr) {
      text += "\n(" + fs::path(result.file_name()).filename().string() + ":" +
              std::to_string(result.line_number()) + ")";
    }
    record->Failure(text);
  }
};

void TryToLoad(const std::string& plugin) {
  try {
    OpenPlugin(plugin);
  } catch (const std::runtime_error& error) {
    record->Failure(error.what());
  }
}

// Records what is wrong with the values of --set, and returns whether nothing is. Other defects are for the
// cases to find.
bool CheckOptions(const Arguments& arguments) {
  try {
    const dtrun_plugin& plugin = *LoadPlugin(arguments.plugin, KindOf(arguments));
    if (const std::string missing = MissingOption(plugin, arguments.options); !missing.empty()) {
      record->Failure(missing);
      return false;
    }
    if (!arguments.options.empty()) MakeOptions(plugin, arguments.options);
  } catch (const std::invalid_argument& error) {
    record->Failure(error.what());
    return false;
  } catch (const std::runtime_error&) {
  }
  return true;
}

// Whether a failure of init may lie at what this host has, not at the plugin.
bool LacksSomething(dtrun_status status) {
  return status == DTRUN_UNSUPPORTED || status == DTRUN_NOT_FOUND || status == DTRUN_FAILED_PRECONDITION ||
         status == DTRUN_VENDOR || status == DTRUN_SYSTEM;
}

// Options of plugins below that init has not opened.
void CheckOptionsBelow(const dtrun_options& options) {
  for (const auto& [key, value] : options.of_others) {
    const std::string name = key.substr(0, key.find('.'));
    if (HasOpened(name)) continue;
    return record->Failure("option '" + key +
                           "' is of no plugin here: the plugin stands on none of the name '" + name + "'");
  }
}

// Records, as the reason of a skip, what init says is missing here. Other failures are for the cases to find.
void TryInit(const Arguments& arguments) {
  try {
    const std::int32_t kind = KindOf(arguments);
    const dtrun_plugin& plugin = *LoadPlugin(arguments.plugin, kind);
    if (plugin.init == nullptr || plugin.shutdown == nullptr) return;
    const auto options = MakeOptions(plugin, arguments.options);
    dtrun_instance* instance = nullptr;
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = sdk::InitPlugin(plugin, Host(kind), options.get(), &instance, &error);
    const bool has_text = error.message[0] != '\0' && std::memchr(error.message, '\0', sizeof error.message);
    if (status != DTRUN_OK && !WrongBelow().empty())
      record->Failure(WrongBelow());
    else if (LacksSomething(status) && has_text)
      record->Skip(std::string("cannot be initialised here: ") + error.message);
    if (status == DTRUN_OK) CheckOptionsBelow(*options);
    if (status == DTRUN_OK && instance != nullptr) plugin.shutdown(instance);
  } catch (const std::exception&) {
  }
}

int RunOneCase(const Arguments& arguments) {
  ClaimProcess();
  setenv("DTRUN_CONFORMANCE_FOLDER", fs::absolute(arguments.record).parent_path().c_str(), 1);
  const LaunchedProcess place = PlaceOf(arguments);
  const RecordWriter writer(arguments.record + (place.size > 0 ? "." + std::to_string(place.rank) : ""));
  record = &writer;
  if (arguments.run_case == kLoading) {
    TryToLoad(arguments.plugin);
    writer.Over();
    return 0;
  }
  if (arguments.run_case == kTrial) {
    if (CheckOptions(arguments)) TryInit(arguments);
    writer.Over();
    return 0;
  }
  RankWatch::ListenForHangs([](const std::string& text) { record->Failure(text); });
  Register(arguments, KindOf(arguments), place);
  PrintStackOfCrash();
  ExplainCrashesBehindGuards();
  InitTests();
  GTEST_FLAG_SET(filter, arguments.run_case);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Recorder);
  const int code = RUN_ALL_TESTS();
  EndIfCopied();
  writer.Over();
  return code;
}

}  // namespace

void InitTests() {
  std::vector<std::string> stray;  // GoogleTest would obey them
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("GTEST_")) stray.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : stray) unsetenv(name.c_str());
  int argc = 1;
  char name[] = "dtrun-conformance";
  char* argv[] = {name, nullptr};
  testing::InitGoogleTest(&argc, argv);
}

int TryOneCase(const Arguments& arguments) {
  try {
    return RunOneCase(arguments);
  } catch (const std::exception& error) {
    EndIfCopied();
    std::cerr << error.what() << "\n";
    return 2;
  }
}

}  // namespace dtrun::conformance::tool
