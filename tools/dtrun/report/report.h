// The verb `dtrun report`: one HTML file about a job, for a browser without network or scripts. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dtrun::cli {

struct ReportArguments {
  std::string job;
  std::string out;  // a file, or "-"; empty: report.html in the run folder
};

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddReport(CLI::App& app, ReportArguments* to);
// The exit code: 0, or 2 for a user error.
int Report(const ReportArguments& arguments);

}  // namespace dtrun::cli
