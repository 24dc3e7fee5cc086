// Manual pages of dtrun and of each of its verbs, written from the same parser as --help, so that both say
// the same. Pure; any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::cli {

struct ManPage {
  std::string name;  // "dtrun-plan"
  std::string text;  // roff, of section 1
};

// One for the root and one for each verb that a user may type, its own verbs included. `verbatim`: the help
// of the verb torchrun, which has another parser.
std::vector<ManPage> ManPages(const CLI::App& root, const std::string& version, const std::string& verbatim);

// A line that roff prints as it is, and the head of a page of `section`: what they are for other pages.
std::string RoffLine(std::string_view text);
std::string RoffHead(const std::string& page, int section, const std::string& version, std::string_view what);

}  // namespace dtrun::cli
