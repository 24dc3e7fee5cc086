#include "core/job/messages.h"

#include <string>
#include <utility>

#include "core/failures/table.h"
#include "core/output/display.h"
#include "core/output/message.h"

namespace dtrun::job {

void Messages::Say(std::string_view text) {
  constexpr auto kStream = output::Stream::kErr;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const bool terminal = console_.terminal(kStream);
  console_.Line(kStream, output::Message(output::TamedMessage(text), terminal ? console_.columns(kStream) : 0,
                                         output::WantsColour(style_.colour, terminal)));
}

void Messages::Note(const Status& written) {
  if (!written) Say("dtrun: " + written.error().text);
}

bool Messages::NoteEvent(const Status& written) {
  if (!written && !std::exchange(told_event_, true)) Note(written);
  return written.ok();
}

void Messages::TellUnreadFailures() {
  if (std::exchange(told_unread_, true)) return;
  const auto known = failures::Known();
  for (const std::string& problem : known->problems()) Say("dtrun: known failures: " + problem);
}

}  // namespace dtrun::job
