// A TOML value read as what a spec says it is. Pure functions; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/options/value.h"

namespace dtrun::config {

// One thing wrong inside a value.
struct Fault {
  std::string part;  // "[2]", ".PATH"; empty: the value itself
  Position at;
  std::string message;  // without place and key
};

// Unset, with at least one fault added, when `node` cannot be that option's value.
options::Data Convert(const options::Spec& spec, const Node& node, const std::filesystem::path& folder,
                      std::vector<Fault>& faults);

// Whether `node` is of a kind that Convert takes for the type, so that a text given by
// --set is TOML rather than a plain word.
bool Fits(options::Type type, Node::Kind kind);

}  // namespace dtrun::config
