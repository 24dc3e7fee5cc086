// The memory of a RecorderMemory: made by the agent, mapped by its ranks. Move-only; one owner.
//
// Its size is sealed, so no process can truncate it under its readers. Any thread may read it.
#pragma once

#include <string>
#include <utility>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/contract/recorder_memory.h"

namespace dtrun::contract {

class RecorderMapping {
 public:
  // An empty recorder memory for `ranks` ranks.
  static Result<RecorderMapping> Create(int ranks);
  // Maps the recorder memory behind `fd`: the pages of `rank` for writing, the others for reading. Errors
  // call it `name`.
  static Result<RecorderMapping> Open(int fd, const std::string& name, int rank);

  RecorderMapping(RecorderMapping&& other) noexcept
      : fd_(std::move(other.fd_)), recorder_memory_(std::exchange(other.recorder_memory_, {})) {}
  RecorderMapping& operator=(RecorderMapping&&) = delete;
  ~RecorderMapping();

  const RecorderMemory& recorder_memory() const { return recorder_memory_; }
  // The path for other processes, while this object lives.
  std::string Path() const;
  // For processes that cannot reach Path from their namespaces. -1 if this mapping was opened.
  int fd() const { return fd_.get(); }

 private:
  RecorderMapping(UniqueFd fd, const RecorderMemory& recorder_memory)
      : fd_(std::move(fd)), recorder_memory_(recorder_memory) {}
  UniqueFd fd_;
  RecorderMemory recorder_memory_;
};

}  // namespace dtrun::contract
