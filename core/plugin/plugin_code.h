// Which loaded plugin the code at an address belongs to.
//
// load.cc notes the code of each plugin and of the libraries that it brought along; nothing is ever removed,
// as plugins stay loaded. CodeAt: any thread, also in a signal handler. The rest: under the registry's lock.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/plugin/plugin.h"

namespace dtrun::plugin {

struct Code {
  enum class Of : std::uint8_t {
    kPlugin,
    kItsLibrary,
    kSystem
  } of = Of::kPlugin;  // kSystem: of the C and C++ library
  std::uintptr_t begin = 0, end = 0;
  const char* who = "";  // "backend 'demo'"
};

// Null for any other code: the program's, dtrun's own.
const Code* CodeAt(std::uintptr_t address);
// Of the plugin that the text begins with: "backend 'demo', in its init".
bool IsOf(const Code& code, const char* text);
const Code* CodeOf(const char* text);

// How the text of a call ends while the plugin's file is being loaded. Its code is not known yet.
inline constexpr char kBeingLoaded[] = "being loaded";
bool IsLoading(const char* text);

// Counts the thread that calls for the plugin with that code, until the thread ends. Any thread.
void CountThread(const void* code);
// Threads of the plugin that the text names, which have been counted and live. Those that are about to end
// have half a second for it. Any thread.
int LivingThreads(const char* text);

// Lives while a plugin is loaded.
class CodeOfLoad {
 public:
  CodeOfLoad();
  // Once it is loaded. `inside`: an address in its file.
  void Note(Kind kind, const std::string& name, const void* inside) const;

 private:
  std::set<std::uintptr_t> before_;  // where the objects of the process begin
};

}  // namespace dtrun::plugin
