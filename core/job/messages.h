// What dtrun itself tells the user while a job runs, on standard error and not among the ranks' lines.
//
// Owned by the job's run. The loop's thread calls it.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/output/output.h"
#include "core/output/style.h"

namespace dtrun::job {

class Messages {
 public:
  // Both outlive it.
  Messages(const output::Style& style, output::Console& console) : style_(style), console_(console) {}

  // May quote ranks or other hosts, and end with newlines.
  void Say(std::string_view text);
  // Tells of a file that could not be written.
  void Note(const Status& written);
  // The same for a line of events.log; a full disk is told once.
  bool NoteEvent(const Status& written);
  // Tells once of entries of known failures that could not be read.
  void TellUnreadFailures();

 private:
  const output::Style& style_;
  output::Console& console_;
  bool told_event_ = false, told_unread_ = false;
};

}  // namespace dtrun::job
