// What dtrun itself tells the user while a job runs, on standard error and not among the ranks' lines, and
// the end of the job's output. Owned by the job's run; its loop thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/output/output.h"
#include "core/output/style.h"
#include "core/process/lifeline.h"

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

// Waits until all output is written, as long as the reader takes; a few seconds only once the user has asked
// the job to end (`ended`: already). Returns the number of lines not shown; the log files have them.
std::uint64_t ShowTheRest(output::Console& console, process::Lifeline& lifeline, bool ended);

}  // namespace dtrun::job
