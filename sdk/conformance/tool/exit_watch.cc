// `_exit` of the whole program, the plugin and its libraries included: counts copies of a case's process that
// end by it, which a plugin that forks and reaps its child would hide (T8). The dynamic linker takes the
// program's symbols first.
#include <sys/syscall.h>
#include <unistd.h>

#include "sdk/conformance/own_process.h"

extern "C" {

__attribute__((noreturn, visibility("default"))) void _exit(int code) {
  dtrun::conformance::CountIfCopied(code);
  for (;;) syscall(SYS_exit_group, code);
}

__attribute__((noreturn, visibility("default"))) void _Exit(int code) noexcept { _exit(code); }

}  // extern "C"
