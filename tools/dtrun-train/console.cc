#include "tools/dtrun-train/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace dtrun::train {
namespace {

constexpr std::chrono::milliseconds kRedrawEvery{100};
constexpr const char* kEraseToEnd = "\x1b[K";

}  // namespace

std::string EpochLine(std::uint64_t epoch, std::uint64_t epochs, double loss, double accuracy,
                      double samples_per_second) {
  return fmt::format("epoch {}/{}  loss {:.4f}  test accuracy {:.4f}  {:.0f} samples/s", epoch, epochs, loss,
                     accuracy, samples_per_second);
}

std::string ProgressLine(std::uint64_t epoch, std::uint64_t epochs, std::uint64_t done, std::uint64_t total,
                         double loss, double samples_per_second) {
  return fmt::format("epoch {}/{}  {:3}%  loss {:.4f}  {:.0f} samples/s", epoch, epochs, done * 100 / total,
                     loss, samples_per_second);
}

bool Console::Due(Clock::time_point now) {
  if (!redraw_ || now < next_) return false;
  next_ = now + kRedrawEvery;
  return true;
}

void Console::Progress(const std::string& text) {
  fmt::print(out_, "\r{}{}", text, kEraseToEnd);
  std::fflush(out_);
  shown_ = true;
}

void Console::Line(const std::string& text) {
  if (shown_) fmt::print(out_, "\r{}", kEraseToEnd);
  shown_ = false;
  fmt::print(out_, "{}\n", text);
  std::fflush(out_);
}

bool WantsRedraw() {
  const char* console = std::getenv("DTRUN_CONSOLE");
  if (console != nullptr) return std::string_view(console) == "terminal";
  return ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace dtrun::train
