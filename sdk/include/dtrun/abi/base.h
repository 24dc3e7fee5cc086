/* base.h - the rules every struct and call of the dtrun plugin ABI follows. docs/abi.md has all
 * rules, with ids; these are the ones to know before reading the other headers.
 *
 * The ABI is plain C11. Nothing of C++, libtorch, stdio or errno crosses it.
 *
 * Structs   Every struct but dtrun_string starts with `struct_size` and `flags`. The side
 *           that allocates a struct sets struct_size to sizeof (DTRUN_INIT does), so no
 *           struct is smaller than at 1.0 (DTRUN_FLOORS in structs.h). A callee reads only the
 *           first min(struct_size, its own sizeof) bytes and treats the rest as zero. Zero means "absent" or "default" unless the member says what
 *           else it means. Members are appended, never moved, never reused. An array of
 *           structs is walked with the struct_size of its first element as the stride. A
 *           callee fills a caller's struct member by member, as far as struct_size goes,
 *           and never zeroes it.
 * Flags     Bits 0 to 15 are hints: a receiver that does not know one ignores it. Bits 16
 *           to 31 must be understood: it refuses instead, with DTRUN_UNSUPPORTED.
 * Unknown   A value of an enum that the receiver does not know is refused, not guessed; a
 *           status that it does not know is read as DTRUN_INTERNAL. Values from
 *           DTRUN_VENDOR_FIRST on are vendors' own and never get a meaning here.
 * Numbers   Fixed width. Enums are int32_t with written values. Sizes and counts are
 *           uint64_t. Durations are int64_t nanoseconds, -1 meaning no limit.
 * Strings   UTF-8. Constant tables, ids, keys of facts and options, topics, names of threads
 *           and all of launcher.h are NUL-terminated pointers. The rest is dtrun_string:
 *           pointer, length, and a NUL after the last byte.
 * Functions A NULL member is an operation that is not supported. Fallible members
 *           return a dtrun_status and leave their outputs untouched on failure. Services
 *           of the host take the host, the plugin's calls an object of the plugin, sinks
 *           their context first.
 * Ownership The maker destroys. Pointers are borrowed for the call unless the member
 *           says otherwise. Destroy and release functions return void.
 * Threads   Every member carries its class:
 *             [any]          any thread, at any time
 *             [control]      one thread at a time for each rank; ranks may be threads of a process
 *             [comm-serial]  never concurrently on one communicator
 *             [abort-safe]   any thread, also while another blocks in this object
 */
#ifndef DTRUN_ABI_BASE_H
#define DTRUN_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Version of this ABI. A host loads each plugin of its major that requires no later minor than it has. The
 * half for devices is a draft with a number of its own: device.h. */
#define DTRUN_ABI_MAJOR 1u
#define DTRUN_ABI_MINOR 0u

/* The oldest minor that a plugin's host must have. An author who uses what a later minor has
 * added defines it before the first header; compiling with newer headers alone needs nothing newer. */
#ifndef DTRUN_ABI_REQUIRED
#define DTRUN_ABI_REQUIRED 0
#endif

/* Stands before what a minor has added to the host's side: DTRUN_SINCE(1). To use it without requiring that
 * minor does not compile. What a plugin may offer needs no mark: an older host does not look at it. */
#define DTRUN_SINCE(minor) DTRUN_SINCE_##minor
#ifdef __has_attribute
#if __has_attribute(unavailable)
#define DTRUN_UNAVAILABLE(text) __attribute__((unavailable(text)))
#endif
#endif
#ifndef DTRUN_UNAVAILABLE
#define DTRUN_UNAVAILABLE(text) __attribute__((deprecated(text)))
#endif
#if DTRUN_ABI_REQUIRED >= 1
#define DTRUN_SINCE_1
#else
#define DTRUN_SINCE_1 DTRUN_UNAVAILABLE("it is of ABI 1.1: define DTRUN_ABI_REQUIRED 1 before the first header")
#endif

/* Bits of any `flags` that must be understood. */
#define DTRUN_FLAGS_MUST_UNDERSTAND 0xffff0000u

/* Where the values of vendors begin, in any enum but dtrun_status. */
#define DTRUN_VENDOR_FIRST 0x40000000

/* Zeroes `object` and stamps its size. `object` is an lvalue, named twice. */
#define DTRUN_INIT(object) \
  ((void)memset(&(object), 0, sizeof(object)), (void)((object).struct_size = (uint32_t)sizeof(object)))

/* Outcome of a call. Values are appended; a reader takes one that it does not know for DTRUN_INTERNAL. */
typedef int32_t dtrun_status;
enum {
  DTRUN_OK = 0,
  DTRUN_PENDING = 1,             /* started, or still running; not an error */
  DTRUN_INVALID_ARGUMENT = 2,    /* the caller's mistake; repeating the call fails again */
  DTRUN_UNSUPPORTED = 3,         /* this object cannot do that, and says so beforehand */
  DTRUN_FAILED_PRECONDITION = 4, /* wrong state: not initialised, after a fork, wrong host */
  DTRUN_NOT_FOUND = 5,
  DTRUN_OUT_OF_MEMORY = 6,
  DTRUN_TIMEOUT = 7,        /* its time is over, and it has failed */
  DTRUN_ABORTED = 8,        /* someone aborted the communicator; not the first cause */
  DTRUN_REMOTE_FAILURE = 9, /* another rank failed; `peer` in dtrun_error names it */
  DTRUN_SYSTEM = 10,        /* the operating system refused; its text is in the message */
  DTRUN_VENDOR = 11,        /* the vendor library refused; domain and code are filled */
  DTRUN_BUSY = 12,          /* another process or call holds it now; nothing was started, a later try may succeed */
  DTRUN_INTERNAL = 13,      /* a defect in dtrun or in a plugin */
  DTRUN_MISMATCH = 14       /* ranks made different calls; the message names both */
};

/* The host that has loaded a plugin: host.h. */
typedef struct dtrun_host dtrun_host;

/* A borrowed UTF-8 string; data[size] is NUL. data may be NULL only when size is 0. */
typedef struct dtrun_string {
  const char* data;
  uint64_t size;
} dtrun_string;

#endif
