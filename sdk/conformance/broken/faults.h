/* faults.h - the faults of the plugins of this folder. A plugin has the fault that its file is named after:
 * libdtrun_backend_wrong_sum.so has WRONG_SUM.
 */
#ifndef DTRUN_BROKEN_FAULTS_H
#define DTRUN_BROKEN_FAULTS_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Rows by hand. */
/* clang-format off */
#define FAULTS(X) \
  X(SOUND)                                                                                          \
  /* of the file and its entry */                                                                   \
  X(EXTRA_SYMBOL) X(NO_NODELETE) X(OTHER_NAME) X(THREAD_IN_ENTRY) X(ENTRY_READS_BEHIND)             \
  X(ANY_EXTENSION) X(BAD_DEFAULT) X(KEY_TWICE) X(LONG_KEY) X(REPLACED_IN_CIRCLE) X(LONG_TABLE)      \
  X(NEEDS_LIBRARY) X(SIGNAL_HANDLER) X(CHANGES_ENVIRONMENT) X(CHANGES_FOLDER) X(REQUIRES_MORE)      \
  X(NO_VENDOR) X(STRANGE_TYPE)                                                                      \
  /* of structs and errors */                                                                       \
  X(LONGER_CAPS) X(INIT_ON_ERROR) X(READS_BEHIND) X(KEEPS_OPERATION) X(IGNORES_FLAGS) X(THROWS)     \
  X(UNKNOWN_STATUS) X(NO_TEXT) X(WRITES_OUT) X(OUT_WITH_OK) X(OTHER_CODE) X(ERROR_WITH_OK)          \
  X(FORKS_AND_WAITS) X(BAD_FACT) X(NULL_VARIABLE) X(LAUNCH_TOUCHES) X(LAUNCH_IS_DEAF) X(NO_NUL)     \
  X(REFUSAL_HARMS) X(SUPPORT_FAILS) X(IGNORES_LAUNCH_FLAGS) X(IGNORES_SINK_FLAGS)                   \
  X(IGNORES_SUPPORT_FLAGS) X(IGNORES_COMM_FLAGS) X(IGNORES_GROUP_FLAGS) X(IGNORES_MEMORY_FLAGS)     \
  X(IGNORES_ABORT_FLAGS) X(IGNORES_INIT_FLAGS)                                                      \
  /* of communicators */                                                                            \
  X(CREATE_TOUCHES) X(ABORT_TOUCHES) X(TEST_TOUCHES) X(EXITS) X(OUT_UNTOUCHED) X(LEAKS_DESCRIPTOR)  \
  X(ABORT_IS_DEAF) X(FORGETS_FAILURE) X(MISSES_NOBODY) X(BLAMES_NOBODY) X(LEAVING_HARMS)            \
  X(LAST_ABORT_STAYS) X(ABORT_IS_FORGOTTEN) X(SILENT_SNAPSHOT) X(MIXES_COMMUNICATORS)               \
  X(DIRTY_MEMORY) X(REGISTERING_CHANGES) X(EMPTY_GROUP_FAILS) X(DROPS_SENT)                         \
  /* of what fails, and of time */                                                                  \
  X(WRITES_LATE) X(SLOW_ABORT) X(SLOW_DESTROY) X(LATE_DEADLINE) X(LEAKS_OF_FAILED)                  \
  X(LEAKS_OF_ABORTED)                                                                               \
  /* of the process */                                                                              \
  X(OPEN_THREAD) X(UNDECLARED_THREAD) X(PRINTS) X(PRINTS_ERRORS) X(WRONG_IN_SOME_RUNS)             \
  X(PRINTS_FAILURES) X(THREAD_STAYS)                                                                \
  /* of ranks that are processes */                                                                 \
  X(BLAMES_NEIGHBOUR) X(BLAMES_RANK_ONE) X(REPORTS_NOBODY) X(LATE_NOTICE) X(LATE_CREATE)            \
  X(IMPATIENT) X(LARGE_HAVE_NO_DEADLINE) X(BLAMES_IN_PARENT) X(REPORTS_IN_PARENT)                   \
  X(NEEDS_A_LIVING_PARENT)                                                                          \
  /* of operations */                                                                               \
  X(NO_MESSAGES) X(CLAIMS_TYPE) X(CLAIMS_BIT) X(CLAIMS_BYTES) X(SMALL_LIMIT) X(WRONG_SUM)           \
  X(ROUNDS_EACH_STEP) X(EARLY_BARRIER) X(WRONG_ORDER) X(NO_TIMEOUTS) X(NEVER_COMPLETES) X(BLOCKS)   \
  X(PENDING_ALONE) X(CHANGES_OUTCOME) X(WAITS_TOO_LONG) X(RELEASES_EARLY) X(CHANGES_INPUT)          \
  X(REFUSES_EMPTY) X(AVG_IS_SUM) X(SUMS_SATURATE) X(BLOCKING_IS_DEAF) X(ONE_WAITER)                 \
  X(MOVES_WHEN_SEEN) X(FIRST_IS_LATE) X(MESSAGES_EXPIRE) X(RECEIVES_HOLD) X(LEAKS_MEMORY)           \
  X(CLAIMS_FUTURE) X(LOSES_NAN) X(SUMS_AS_BFLOAT) X(SHORT_TAGS) X(TEST_SLEEPS) X(LEAKS_SOME)        \
  X(LEAKS_EARLY_MESSAGES) X(LOSES_WAKE_UP) X(WRONG_LATER) X(CAPS_CHANGE) X(SUPPORT_CHANGES)         \
  X(SHORT_QUEUE) X(SOUND_LOSSY) X(CONNECTS_EARLY) X(UNUSABLE_JOINS)                                 \
  X(LOSES_LAST_BYTE) X(WHOLE_AS_DOUBLE) X(LOSES_NEGATIVE_ZERO) X(ROOT_IS_EARLY)                     \
  X(READS_COUNTS_LATE) X(FORGETS_A_BIT) X(SENDS_AFTER_ABORT) X(RETURNS_EARLY) X(SCALE_IS_FLOAT)     \
  X(BITS_DIFFER) X(PRODUCT_IS_FLOAT) X(AVERAGE_IS_FLOAT) X(AVERAGE_OVERFLOWS)                       \
  X(LEAKS_ARRAYS) X(LEAKS_OF_COMMUNICATORS) X(TAKES_MESSAGES) X(RECEIVES_RELEASED_EARLY)            \
  X(SCATTERS_AS_DOUBLE) X(NOT_UTF8) X(NEEDS_A_LIMIT) X(OUTCOME_FOLLOWS) X(NEEDS_AN_ERROR)           \
  X(RECEIVES_FAIL_ALONE) X(SHORT_REASON) X(TIME_OVERFLOWS) X(READS_HOSTS) X(BLOCKING_RECEIVES)      \
  X(RECEIVES_BLOCK) X(SMALL_OVERTAKES) X(NEEDS_ALIGNMENT) X(DROPS_MANY_SENT) X(LEAKS_MAPPING)       \
  X(ENDS_OTHERS) X(SENDS_REFUSED) X(IGNORES_SNAPSHOT_FLAGS) X(LATE_WAIT) X(NO_LIMIT_IS_SHORT)       \
  X(LEAKS_OF_ABSENT) X(THREAD_ENDS_LATE) X(TELLS_NOBODY) X(LEAVES_SILENTLY)                         \
  X(SENDS_HAVE_NO_DEADLINE) X(LEAKS_FAILED_CREATION) X(LEAKS_OF_INSTANCE) X(FILLS_GAP)              \
  X(LOSES_BFLOAT)                                                                                   \
  /* of launchers */                                                                                \
  X(NO_MEMBER) X(OTHER_PLAN) X(RANK_TWICE) X(RANK_MISSING) X(NULL_VALUE) X(NULL_ARGUMENT)           \
  X(EQUALS_IN_NAME) X(DEAF_TO_REFUSAL) X(WRONG_STRIDE) X(FAILS_SILENTLY) X(FORKS) X(PLAN_TOUCHES)   \
  X(WRITES_FILE) X(NO_ARGUMENTS) X(LONG_PROCESS) X(PLAN_OTHER_CODE) X(IGNORES_PLAN_SINK_FLAGS)      \
  X(IGNORES_HOST_FLAGS) X(IGNORES_HOSTS_SINK_FLAGS) X(PLANS_BY_HOME)                                \
  /* of launchers that are asked for hosts, or for commands */                                      \
  X(FINDS_ALWAYS) X(FIND_TOUCHES) X(FIND_WRITES_FILE) X(BAD_EVIDENCE) X(LONG_ALLOCATION)            \
  X(HOSTS_BY_PROCESS) X(CONNECT_TOUCHES) X(CONNECT_WRITES_FILE) X(LONG_HOST)                        \
  X(BAD_TRIAL) X(READS_ENVIRONMENT) X(NO_PLATFORM_IS_A_FAILURE) X(HOST_TWICE) X(NEGATIVE_SLOTS)     \
  X(OTHER_HOSTS) X(NO_ALLOCATION) X(TWO_ALLOCATIONS) X(HOSTS_DEAF_TO_REFUSAL) X(QUERY_READS_BEHIND) \
  X(QUERY_IGNORES_FLAGS) X(CONNECT_WITHOUT_TEXT) X(NO_PROGRAM) X(UNKNOWN_HOST) X(HOST_NOT_STARTED)  \
  X(HOST_STARTED_TWICE) X(CONNECT_DEAF_TO_REFUSAL)                                                  \
  /* of devices */                                                                                  \
  X(NO_COUNTER_WAIT) X(KIND_OF_HOST) X(NO_DEVICES) X(LONG_DESCRIPTION) X(KEEPS_DEVICE)              \
  X(FIRST_BYTE_ONLY) X(ALL_ON_FIRST_DEVICE) X(LONGER_MEMORY) X(BAD_ALIGNMENT) X(TAKES_ANY_DEVICE)   \
  X(COPIES_AT_ONCE) X(ALWAYS_CAPTURED) X(NEVER_RECORDED_RUNS) X(EVENTS_ARE_EARLY) X(WAIT_FORGETS)   \
  X(WAITS_FOR_NEW_PLACE) X(COUNTER_FORGETS) X(COUNTER_EQUAL) X(COUNTER_BLOCKS) X(DESTROY_WAITS)     \
  X(DESTROY_DROPS) X(NO_DRAFT) X(IGNORES_STREAM_FLAGS)

enum {
#define CONSTANT(name) name,
  FAULTS(CONSTANT)
#undef CONSTANT
};

static struct {
  int fault;
  char name[64]; /* of the plugin: its file's, without the kind */
} this_plugin;

#define FAULT(which) (this_plugin.fault == (which))

/* Reads the fault from the path of this shared object. Called first by the entry. */
static inline void find_fault(void) {
  static const char* const known[] = {
#define NAME(name) #name,
      FAULTS(NAME)
#undef NAME
  };
  Dl_info info;
  if (dladdr(&this_plugin, &info) == 0) abort();
  const char* name = strstr(strrchr(info.dli_fname, '/'), "libdtrun_") + strlen("libdtrun_");
  name = strchr(name, '_') + 1;
  const size_t length = strcspn(name, ".");
  if (length >= sizeof this_plugin.name) abort();
  memcpy(this_plugin.name, name, length);
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (strlen(known[i]) == length && strncasecmp(known[i], name, length) == 0) this_plugin.fault = (int)i;
  }
}

#endif
