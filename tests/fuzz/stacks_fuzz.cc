// The stacks of a Python process with corrupted memory: reading ends, stays in the memory and
// in its bounds, and says lines.
//
// An input is what is written where over an image of a good one: a byte that says how, an address, a value.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/stacks/place.h"
#include "core/stacks/python.h"
#include "core/stacks/testing/python_image.h"
#include "tests/fuzz/source.h"
#include "tests/fuzz/target.h"

namespace stacks_fuzz {

using namespace dtrun;
using stacks::testing::PythonImage;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void RequirePrintable(const std::string& text) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    Require(byte >= 0x20 && byte != 0x7f, "a text has control characters");
  }
}

void Scribble(fuzz::Source& in, PythonImage& image) {
  const std::uint8_t how = in.Byte();
  std::uint64_t at = (in.Byte() | static_cast<std::uint64_t>(in.Byte()) << 8) % (PythonImage::kSize - 8);
  if (how & 1) at = at / 8 * 8;
  switch (how / 2 % 4) {
    case 0: return image.Put(at, in.Byte());
    case 1: return image.PutPointer(at, (in.Byte() | in.Byte() << 8) % (2 * PythonImage::kSize));
    case 2: return image.Put(at, in.Number());
    default: {
      std::uint64_t value = 0;
      for (int i = 0; i < 8; ++i) value = value << 8 | in.Byte();
      return image.Put(at, value);
    }
  }
}

void Judge(const stacks::Python& python, const std::string& source) {
  Require(python.threads.size() <= 256, "no more threads than are read");
  for (const stacks::PythonThread& thread : python.threads) {
    Require(!thread.frames.empty() && thread.frames.size() <= 100, "no more frames than are read");
    for (const stacks::Frame& frame : thread.frames) {
      RequirePrintable(frame.file);
      RequirePrintable(frame.function);
    }
    const stacks::Place place =
        stacks::PlaceOf(thread.frames, [&](const std::string&, int) { return source; });
    RequirePrintable(place.where);
    (void)stacks::FramesText(thread.frames);
  }
}

DTRUN_FUZZ_TARGET(stacks)(const std::uint8_t* data, std::size_t size) {
  fuzz::Source in(data, size);
  const std::string source = in.Bytes(64);
  PythonImage image;
  stacks::PythonReader earlier(image, PythonImage::Maps());  // has met the program before it changed
  earlier.Read(image);
  while (!in.empty()) Scribble(in, image);
  Judge(earlier.Read(image), source);
  Judge(stacks::PythonReader(image, PythonImage::Maps()).Read(image), source);
  return 0;
}

}  // namespace stacks_fuzz
