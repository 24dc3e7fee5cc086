// The result of a case, from the process that runs it to the one that waits for it, in a file.
//
// Missing entries at the end of the process were not reached: a case with a record that does not say that it
// was over has crashed, exited or hung. The writer may be used by any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::conformance::tool {

class RecordWriter {
 public:
  // Throws std::runtime_error when the file cannot be made.
  explicit RecordWriter(const std::string& file);  // notes that the process has begun
  void Failure(const std::string& text) const { Write('F', text); }
  void Skip(const std::string& reason) const { Write('S', reason); }
  void Over() const { Write('O', ""); }

 private:
  void Write(char what, const std::string& text) const;
  int file_;
};

struct Record {
  std::vector<std::string> failures;
  std::string skip;
  bool begun = false;  // the process of the case ran
  bool skipped = false;
  bool over = false;
};
// An empty record when there is no such file.
Record ReadRecord(const std::string& file);

}  // namespace dtrun::conformance::tool
