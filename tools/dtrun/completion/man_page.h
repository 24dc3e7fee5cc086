// Manual pages of dtrun and its verbs, generated from the parser, so that they match --help. Pure; any
// thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::cli {

struct ManPage {
  std::string name;  // "dtrun-plan"
  std::string text;  // roff, section 1
};

// One page for the root and one for each public verb, including its own verbs. `verbatim`: the help of the
// verb torchrun, which has another parser.
std::vector<ManPage> ManPages(const CLI::App& root, const std::string& version, const std::string& verbatim);

// Helpers for other pages: a line escaped for roff, and the head of a page of `section`.
std::string RoffLine(std::string_view text);
std::string RoffHead(const std::string& page, int section, const std::string& version, std::string_view what);

}  // namespace dtrun::cli
