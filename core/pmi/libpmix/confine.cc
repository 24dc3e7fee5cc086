#include "core/pmi/libpmix/confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace dtrun::pmi {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kArchitecture = 0;  // no filter
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

constexpr unsigned kAllowed[] = {
// Missing in older headers.
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_openat2
    SYS_openat2,
#endif
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef __x86_64__  // older forms, missing on other architectures
    SYS_arch_prctl, SYS_time, SYS_getrlimit, SYS_getpgrp, SYS_poll, SYS_select, SYS_epoll_create,
    SYS_epoll_wait, SYS_eventfd, SYS_pipe, SYS_dup2, SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access,
    SYS_readlink, SYS_getdents, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename, SYS_symlink, SYS_link,
    SYS_chmod, SYS_chown, SYS_lchown,
#endif
    // memory
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_membarrier,
    // threads, and itself
    SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_gettid, SYS_getpid,
    SYS_getppid, SYS_exit, SYS_exit_group, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_getcpu, SYS_get_mempolicy, SYS_prctl, SYS_prlimit64,
    SYS_getrusage, SYS_times,
    // signals
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigreturn,
    SYS_sigaltstack, SYS_restart_syscall,
    // who and where it is
    SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups,
    SYS_getpgid, SYS_getsid, SYS_uname, SYS_sysinfo, SYS_getrandom,
    // time
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
    // waiting
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_pipe2,
    // descriptors and files
    SYS_openat, SYS_close, SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_write, SYS_writev, SYS_pwrite64,
    SYS_pwritev, SYS_lseek, SYS_dup, SYS_dup3, SYS_fcntl, SYS_ioctl, SYS_flock, SYS_fstat, SYS_newfstatat,
    SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_readlinkat, SYS_getdents64, SYS_getcwd,
    SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_mkdirat, SYS_unlinkat, SYS_renameat,
    SYS_renameat2, SYS_symlinkat, SYS_linkat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_umask,
    SYS_utimensat,
    // sockets
    SYS_socket, SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_connect, SYS_getsockname,
    SYS_getpeername, SYS_getsockopt, SYS_setsockopt, SYS_shutdown, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
    SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg};

// abort() and raise().
constexpr unsigned kAllowedOnItself[] = {SYS_kill, SYS_tgkill};

constexpr unsigned kAllow = SECCOMP_RET_ALLOW;
constexpr unsigned kMissing = SECCOMP_RET_ERRNO | ENOSYS;

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    If(BPF_JEQ, kArchitecture, 1, 0);  // reject 32-bit calls, which have other numbers
    Return(kMissing);
    LoadNumber();
    for (const unsigned number : kAllowed) {
      If(BPF_JEQ, number, 0, 1);
      Return(kAllow);
    }
    for (const unsigned number : kAllowedOnItself)
      AllowIf(number, BPF_JEQ, static_cast<unsigned>(::getpid()));
    // Allows threads but no processes. clone3 keeps its flags in memory; without it C libraries use clone.
    AllowIf(SYS_clone, BPF_JSET, CLONE_THREAD);
    Return(kMissing);
  }

  sock_fprog program() { return {static_cast<unsigned short>(code_.size()), code_.data()}; }

 private:
  void Load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)));
  }
  void LoadNumber() { Load(offsetof(seccomp_data, nr)); }
  void If(int test, unsigned value, unsigned char skip_then, unsigned char skip_else) {
    code_.push_back(
        BPF_JUMP(static_cast<unsigned short>(BPF_JMP | test | BPF_K), value, skip_then, skip_else));
  }
  void Return(unsigned value) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, value)); }

  // Checks the low half of the first argument (little-endian), all that the kernel uses of a pid.
  void AllowIf(unsigned number, int test, unsigned value) {
    If(BPF_JEQ, number, 0, 4);
    Load(offsetof(seccomp_data, args));
    If(test, value, 0, 1);
    Return(kAllow);
    Return(kMissing);
  }

  std::vector<sock_filter> code_;
};

}  // namespace

Status Confine() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Error::System("cannot give up new privileges (PR_SET_NO_NEW_PRIVS)", errno);
  if (kSanitized || kArchitecture == 0) return {};
  Filter filter;
  sock_fprog program = filter.program();
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return Error::System("cannot set a seccomp filter", errno);
  return {};
}

}  // namespace dtrun::pmi
