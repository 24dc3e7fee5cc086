// The part of JSON that lists hosts: ["algo-1","algo-2"], and members of an object that are strings or such
// lists. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::schedulers {

// Nothing: it is no list of strings.
std::optional<std::vector<std::string>> StringsOf(const std::string& json);
// Members that are strings or lists of them, a string as a list of one; others, of any depth, are passed by.
// Nothing: it is no object.
std::optional<std::map<std::string, std::vector<std::string>>> StringMembersOf(const std::string& json);

}  // namespace dtrun::schedulers
