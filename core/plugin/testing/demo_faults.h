/* demo_faults.h - the faults of the plugins that are built of demo.c, one each; CMakeLists.txt has the
 * numbers. */
#ifndef DTRUN_PLUGIN_TESTING_DEMO_FAULTS_H
#define DTRUN_PLUGIN_TESTING_DEMO_FAULTS_H

enum {
  FAULT_NONE = 0,
  FAULT_OTHER_MINOR = 1,
  FAULT_ZERO_STAMPS = 2,
  FAULT_OTHER_KIND = 3,
  FAULT_OTHER_NAME = 4,
  FAULT_NULL_TABLE = 5,
  FAULT_ENTRY_FAILS = 6,
  FAULT_ENTRY_CRASHES = 7,
  FAULT_NEWER_STRUCT = 8,
  FAULT_MISSING_MEMBER = 9,
  FAULT_ENTRY_HANGS = 10,
  FAULT_ENTRY_EXITS = 11,
  FAULT_LAUNCH_CRASHES = 12,
  FAULT_LAUNCH_FAILS = 13,
  FAULT_ENTRY_STOPS = 14,
  FAULT_ENTRY_KILLED = 15,
  FAULT_ENTRY_CLOSES = 16,
  FAULT_INIT_HANGS = 17, /* in a rank */
  FAULT_INIT_EXITS = 18,
  FAULT_EXITS_WHEN_LOADED = 19, /* in a rank */
  FAULT_OPERATION_EXITS = 20,
  FAULT_SHUTDOWN_EXITS = 21,
  FAULT_DESTROY_HANGS = 22,
  FAULT_LAUNCH_TALKS = 23,
  FAULT_OPERATION_LEAVES = 24, /* by _exit */
  FAULT_THREAD_EXITS = 25,     /* one of its own */
  FAULT_LAUNCH_DAEMON = 26,    /* leaves a process in another session */
  FAULT_CRASH_DAEMON = 27,
  FAULT_LAUNCH_NULL = 28, /* a variable without a value */
  FAULT_LAUNCH_TWICE = 29,
  FAULT_CONSTRUCTS = 30, /* its constructor creates the file DEMO_CONSTRUCTED */
  FAULT_REFUSES = 31, /* rank 1 makes no communicator, rank 0 waits for it, rank 2 does not, rank 3 is deaf */
  FAULT_INIT_REFUSES = 32, /* on rank 1; the others wait for it */
  FAULT_OPERATION_CRASHES = 33,
  FAULT_THREAD_ABORTS = 34, /* one of its own */
  FAULT_OPERATION_HANGS = 35,
  FAULT_LAUNCH_HUGE = 36,            /* a fact of 100 MB */
  FAULT_ESCAPES = 37,                /* in its texts, facts, log and errors */
  FAULT_LEAKS_THREAD = 38,           /* at each operation */
  FAULT_LIBRARY_CRASHES = 39,        /* on a thread of its own: brought.c */
  FAULT_OPERATION_HANGS_ON_ONE = 40, /* rank 1; the others wait for it, until the timeout */
  FAULT_INIT_HANGS_ON_ONE = 41,
  FAULT_CREATE_HANGS_ON_ONE = 42,
  FAULT_OVERFLOWS = 43,        /* the stack, in an operation */
  FAULT_THREAD_JUMPS = 44,     /* one of its own, to no code */
  FAULT_THREAD_OVERFLOWS = 45, /* the stack of one of its own */
  FAULT_OPERATION_THROWS = 46, /* a C++ exception: demo_throw.cc */
  FAULT_CREATE_THROWS = 47,
  FAULT_DESTROY_THROWS = 48,
  FAULT_ENTRY_FORKS = 49,
  FAULT_SUPPORT_HANGS = 50,
  FAULT_ENDS_THREAD = 51,         /* that of the program, in an operation */
  FAULT_CRASHES_WHEN_LOADED = 52, /* in a rank, before the entry */
  FAULT_LOADING_ENDS_THREAD = 53, /* in a rank, that of the program */
  FAULT_SHUTDOWN_ENDS_THREAD = 54,
  FAULT_LAUNCH_LONG = 55,         /* a variable of 200,000 bytes */
  FAULT_OPERATION_IS_SILENT = 56, /* it fails without a text */
  FAULT_SUPPORT_FAILS = 57,
  FAULT_INIT_IS_SILENT = 58, /* in a rank: it fails without a text */
  FAULT_INIT_GIVES_NOTHING = 59,
  FAULT_OPERATION_GIVES_NOTHING = 60, /* it is pending, without a request */
  FAULT_BAD_DEFAULT = 61
};

#endif
