#include "core/stacks/loader.h"

#include <algorithm>
#include <string_view>

namespace dtrun::stacks {
namespace {

// Whether `function`, for example "_try_get_data", is the last part of the frame's name,
// "_MultiProcessingDataLoaderIter._try_get_data".
bool IsFunction(const Frame& frame, std::string_view file, std::string_view function) {
  const std::string_view name = frame.function;
  return frame.file.ends_with(file) && name.substr(name.rfind('.') + 1) == function;
}

bool IsLoop(const Frame& frame) {
  return IsFunction(frame, "/torch/utils/data/_utils/worker.py", "_worker_loop");
}

}  // namespace

bool WaitsForLoader(const std::vector<Frame>& frames) {
  return std::ranges::any_of(frames, [](const Frame& frame) {
    return IsFunction(frame, "/torch/utils/data/dataloader.py", "_try_get_data");
  });
}

bool IsWorker(const std::vector<Frame>& frames) { return std::ranges::any_of(frames, IsLoop); }

std::optional<Place> PlaceInWorker(const std::vector<Frame>& frames, const Source& source) {
  const auto loop = std::ranges::find_if(frames, IsLoop);
  // Outer frames belong to the rank that forked the worker.
  if (loop == frames.end() || loop == frames.begin()) return std::nullopt;
  if (IsFunction(*(loop - 1), "/multiprocessing/queues.py", "get")) return std::nullopt;
  return PlaceOf(std::vector<Frame>(frames.begin(), loop), source);
}

}  // namespace dtrun::stacks
