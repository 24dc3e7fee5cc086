// Collects, per address, why an agent cannot reach its root, and formats it as one line.
//
// Owned by the dialer; loop thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dtrun::protocol {

class Trouble {
 public:
  // Notes a problem of an address, or of a name; `sentence` is a complete sentence.
  void Note(const std::string& address, const std::string& why);
  void NoteName(const std::string& name, const std::string& sentence);
  // "cannot reach 10.5.0.1:40123, 10.6.0.1:40123: no answer; 'node0' does not resolve: ..."
  std::string Line() const;
  // Whether Line has changed since it was last reported. Marks it as reported.
  bool TakeNews();
  const std::string& told() const { return latest_; }

 private:
  void Keep(std::vector<std::pair<std::string, std::string>>* where, const std::string& what,
            const std::string& why);

  std::vector<std::pair<std::string, std::string>> addresses_, names_;
  std::set<std::string> told_;
  std::string latest_;
};

}  // namespace dtrun::protocol
