// A UCX context: what was selected of this host, shared by the workers of a backend.
//
// Made by the backend, shared by its communicators, gone with the last of them. Constant once
// made; any thread.
#pragma once

#include <optional>

#include "library.h"
#include "resources.h"

namespace dtrun::ucx_plugin {

class Context {
 public:
  // Throws sdk::Failure. `rails`: nullopt leaves it to UCX.
  Context(const Library& library, Selection selection, std::optional<std::int64_t> rails);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Library& library() const { return library_; }
  const Selection& selection() const { return selection_; }
  ucp_context_h get() const { return context_; }

 private:
  const Library& library_;
  const Selection selection_;
  ucp_context_h context_ = nullptr;
};

}  // namespace dtrun::ucx_plugin
