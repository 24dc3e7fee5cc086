// Converts a TOML value to the type of its option. Pure functions; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/options/value.h"
#include "core/spec/document.h"

namespace dtrun::spec {

// One error inside a value.
struct Fault {
  std::string part;  // "[2]", ".PATH"; empty: the value itself
  Position at;
  std::string message;  // without place and key
};

// Returns unset and adds at least one fault if `node` is not a valid value of the option.
options::Data Convert(const options::Spec& spec, const Node& node, const std::filesystem::path& folder,
                      std::vector<Fault>& faults);

// Whether Convert accepts this kind of node for the type, so that --set text is TOML and not a
// plain word.
bool Fits(options::Type type, Node::Kind kind);

}  // namespace dtrun::spec
