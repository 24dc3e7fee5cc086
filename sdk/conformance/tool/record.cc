#include "record.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "sdk/conformance/own_process.h"

namespace dtrun::conformance::tool {

// An entry is a letter, the bytes of its text in decimal, a line feed and the text; one write, so that
// threads do not mix theirs.
RecordWriter::RecordWriter(const std::string& file)
    : file_(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  if (file_ < 0) throw std::runtime_error("cannot write '" + file + "'");
  Write('B', "");
}

void RecordWriter::Write(char what, const std::string& text) const {
  EndIfCopied();
  const std::string entry = what + std::to_string(text.size()) + "\n" + text;
  if (write(file_, entry.data(), entry.size()) < 0) _exit(1);  // then it counts as failed
}

Record ReadRecord(const std::string& file) {
  Record record;
  std::ifstream in(file, std::ios::binary);
  char what = 0;
  for (std::size_t bytes = 0; in.get(what) && in >> bytes && in.get() == '\n';) {
    std::string text(bytes, '\0');
    if (!in.read(text.data(), static_cast<std::streamsize>(bytes))) break;
    record.begun = true;
    if (what == 'F') record.failures.push_back(text);
    if (what == 'O') record.over = true;
    if (what != 'S') continue;
    record.skipped = true;
    record.skip = text;
  }
  return record;
}

}  // namespace dtrun::conformance::tool
