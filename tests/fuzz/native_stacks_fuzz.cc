// Any bytes as the output of eu-stack and gdb, and as that of a rank that crashed: names have no control
// characters, and numbers are in their bounds.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/stacks/crash.h"
#include "core/stacks/native.h"
#include "tests/fuzz/target.h"

namespace native_stacks_fuzz {

using namespace dtrun;

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequirePrintable(const std::string& text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    Require(byte >= 0x20 && byte != 0x7f);
  }
}

void Check(const std::vector<stacks::NativeFrame>& frames) {
  for (const stacks::NativeFrame& frame : frames) {
    RequirePrintable(frame.function);
    RequirePrintable(frame.module);
    RequirePrintable(frame.file);
  }
  if (const auto place = stacks::PlaceOf(frames)) {
    Require(!place->within.empty());
    RequirePrintable(place->what + place->where + place->within);
  }
}

DTRUN_FUZZ_TARGET(native_stacks)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(stacks::FramesOfEuStack(text, stacks::kAllThreads));
  Check(stacks::FramesOfGdb(text, stacks::kAllThreads, text));
  const std::vector<stacks::PrintedFrame> printed = stacks::PrintedStack(LinesOf(text), 4711, 11);
  Require(printed.size() <= 64);
  for (const stacks::PrintedFrame& frame : printed) Require(!frame.module.empty());
  if (const auto fault = stacks::FaultIn(text, 4711))
    Require(fault->address >= fault->begin && fault->address - fault->begin < fault->size);
  (void)stacks::CoreFile(text, "/nonexistent", 4711, {});
  return 0;
}

}  // namespace native_stacks_fuzz
