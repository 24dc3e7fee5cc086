/* device.c - two devices with one fault; their memory is the host's, their streams are threads. */
#define _DEFAULT_SOURCE /* usleep */
#include "dtrun/abi/device.h"

#include <stdio.h>
#include <string.h>

#include "dtrun/abi/structs.h"
#include "table.h"

enum { DEVICES = 2, KIND = DTRUN_DEVICE_OTHER + 5, MOST_BLOCKS = 256, NO_DEVICE = -1 };

/* What mem_alloc has given. */
static struct {
  char* start;
  uint64_t bytes;
  int32_t device; /* NO_DEVICE: of the host */
} blocks[MOST_BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows, too */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread int32_t current_device;

typedef struct event_state {
  int users;
  uint64_t recorded;
  uint64_t reached;
} event_state;

struct dtrun_event {
  event_state* state;
};

typedef struct task {
  struct task* next;
  enum { COPY, RECORD, WAIT_EVENT, WAIT_COUNTER } what;
  void* to;
  const void* from;
  uint64_t bytes;
  event_state* event;
  uint64_t place;
  const uint32_t* counter;
  uint32_t value;
} task;

typedef struct stream {
  task* first;
  task* last;
  int busy;
  int over; /* it was destroyed */
} stream;

static dtrun_status refuse(dtrun_error* err, dtrun_status code, const char* text) {
  return dtrun_error_set(err, code, -1, FAULT(NO_TEXT) ? "" : text);
}

static void drop(event_state* state) {
  if (--state->users == 0) free(state);
}

/* With the lock held. */
static int counter_reached(const task* one) {
  const uint32_t now = __atomic_load_n(one->counter, __ATOMIC_ACQUIRE);
  return FAULT(COUNTER_EQUAL) ? now == one->value : now >= one->value;
}

/* With the lock held, which it gives away while it waits. */
static void run_task(task* one) {
  if (one->what == COPY) {
    memcpy(one->to, one->from, one->bytes);
  } else if (one->what == RECORD) {
    if (one->event->reached < one->place) one->event->reached = one->place;
    drop(one->event);
  } else if (one->what == WAIT_EVENT) {
    while (one->event->reached < (FAULT(WAITS_FOR_NEW_PLACE) ? one->event->recorded : one->place))
      pthread_cond_wait(&changed, &lock);
    drop(one->event);
  } else {
    while (!counter_reached(one)) {
      pthread_mutex_unlock(&lock);
      usleep(50);
      pthread_mutex_lock(&lock);
    }
  }
  pthread_cond_broadcast(&changed);
}

static void* run(void* argument) {
  stream* const self = argument;
  pthread_mutex_lock(&lock);
  for (;;) {
    task* one;
    while (self->first == NULL && !self->over) pthread_cond_wait(&changed, &lock);
    if (self->first == NULL || (FAULT(DESTROY_DROPS) && self->over)) break;
    one = self->first;
    self->first = one->next;
    if (self->first == NULL) self->last = NULL;
    self->busy = 1;
    run_task(one);
    self->busy = 0;
    pthread_cond_broadcast(&changed);
    free(one);
  }
  pthread_mutex_unlock(&lock);
  free(self);
  return NULL;
}

static void post(const dtrun_stream* on, const task* what) {
  stream* const to = on->native;
  task* const one = malloc(sizeof *one);
  if (one == NULL) abort();
  *one = *what;
  one->next = NULL;
  if (to->last == NULL)
    to->first = one;
  else
    to->last->next = one;
  to->last = one;
  pthread_cond_broadcast(&changed);
}

static dtrun_status count(dtrun_instance* self, int32_t* out, dtrun_error* err) {
  (void)self, (void)err;
  if (FAULT(NO_DEVICES)) {
    *out = 0;
    return DTRUN_OK;
  }
  *out = DEVICES;
  return DTRUN_OK;
}

static dtrun_status current(dtrun_instance* self, int32_t* out, dtrun_error* err) {
  (void)self, (void)err;
  *out = current_device;
  return DTRUN_OK;
}

static int is_there(int32_t device) { return FAULT(TAKES_ANY_DEVICE) || (device >= 0 && device < DEVICES); }

static dtrun_status describe(dtrun_instance* self, int32_t device, char* text, uint64_t bytes,
                             dtrun_error* err) {
  char line[64];
  (void)self;
  if (!is_there(device)) return refuse(err, DTRUN_INVALID_ARGUMENT, "there is no such device");
  snprintf(line, sizeof line, "broken device %d", (int)device);
  if (FAULT(LONG_DESCRIPTION))
    memcpy(text, line, strlen(line) + 1);
  else
    snprintf(text, bytes, "%s", line);
  return DTRUN_OK;
}

static dtrun_status memory_of(dtrun_instance* self, const void* pointer, dtrun_memory* out,
                              dtrun_error* err) {
  const char* const at = pointer;
  dtrun_memory place;
  (void)self, (void)err;
  DTRUN_INIT(place);
  place.device_index = NO_DEVICE;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (blocks[i].start == NULL || blocks[i].device == NO_DEVICE) continue;
    if (at < blocks[i].start || at >= blocks[i].start + (FAULT(FIRST_BYTE_ONLY) ? 1 : blocks[i].bytes))
      continue;
    place.device_kind = KIND;
    place.device_index = FAULT(ALL_ON_FIRST_DEVICE) ? 0 : blocks[i].device;
  }
  pthread_mutex_unlock(&lock);
  dtrun_struct_write(out, &place, sizeof place);
  if (FAULT(LONGER_MEMORY)) memset(out + 1, 0, 8);
  return DTRUN_OK;
}

static dtrun_status mem_alloc(dtrun_instance* self, const dtrun_mem_params* params, void** out,
                              dtrun_error* err) {
  void* memory = NULL;
  (void)self;
  if (!FAULT(IGNORES_FLAGS) && (params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return refuse(err, DTRUN_UNSUPPORTED, "a flag of dtrun_mem_params is not known here");
  if (params->device_kind != KIND && params->device_kind != DTRUN_DEVICE_HOST)
    return refuse(err, DTRUN_UNSUPPORTED, "there is no memory of that kind of device here");
  if (params->device_kind == KIND && !is_there(params->device_index))
    return refuse(err, DTRUN_INVALID_ARGUMENT, "there is no such device");
  if (FAULT(WRITES_OUT)) *out = NULL;
  if (params->bytes > (UINT64_C(1) << 40) ||
      posix_memalign(&memory, params->alignment, params->bytes + 64) != 0)
    return refuse(err, DTRUN_OUT_OF_MEMORY, "the device has less memory");
  if (FAULT(BAD_ALIGNMENT) && params->alignment > 64) memory = (char*)memory + 8;
  if (FAULT(KEEPS_DEVICE) && params->device_kind == KIND) current_device = params->device_index;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (blocks[i].start != NULL) continue;
    blocks[i].start = memory;
    blocks[i].bytes = params->bytes;
    blocks[i].device = params->device_kind == KIND ? params->device_index : NO_DEVICE;
    break;
  }
  pthread_mutex_unlock(&lock);
  *out = memory;
  return DTRUN_OK;
}

static void mem_free(dtrun_instance* self, const dtrun_mem_params* params, void* memory) {
  (void)self;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST_BLOCKS; ++i) {
    if (blocks[i].start == memory) blocks[i].start = NULL;
  }
  pthread_mutex_unlock(&lock);
  free(FAULT(BAD_ALIGNMENT) && params->alignment > 64 ? (char*)memory - 8 : memory);
}

static dtrun_status stream_create(dtrun_instance* self, const dtrun_stream_params* params, dtrun_stream* out,
                                  dtrun_error* err) {
  dtrun_stream made;
  pthread_t thread;
  stream* native;
  (void)self;
  if (!FAULT(IGNORES_STREAM_FLAGS) && (params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return refuse(err, DTRUN_UNSUPPORTED, "a flag of dtrun_stream_params is not known here");
  if (!is_there(params->device_index)) return refuse(err, DTRUN_INVALID_ARGUMENT, "there is no such device");
  native = calloc(1, sizeof *native);
  if (native == NULL || pthread_create(&thread, NULL, run, native) != 0) abort();
  pthread_detach(thread);
  DTRUN_INIT(made);
  made.device_kind = KIND;
  made.device_index = params->device_index;
  made.native = native;
  dtrun_struct_write(out, &made, sizeof made);
  return DTRUN_OK;
}

static void stream_destroy(dtrun_instance* self, const dtrun_stream* on) {
  stream* const native = on->native;
  (void)self;
  pthread_mutex_lock(&lock);
  while (FAULT(DESTROY_WAITS) && (native->first != NULL || native->busy)) pthread_cond_wait(&changed, &lock);
  native->over = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static dtrun_status stream_capturing(dtrun_instance* self, const dtrun_stream* on, int32_t* out,
                                     dtrun_error* err) {
  (void)self, (void)on, (void)err;
  *out = FAULT(ALWAYS_CAPTURED);
  return DTRUN_OK;
}

static dtrun_status copy(dtrun_instance* self, void* to, const void* from, uint64_t bytes,
                         const dtrun_stream* on, dtrun_error* err) {
  const task one = {.what = COPY, .to = to, .from = from, .bytes = bytes};
  (void)self, (void)err;
  if (FAULT(COPIES_AT_ONCE)) {
    memcpy(to, from, bytes);
    return DTRUN_OK;
  }
  pthread_mutex_lock(&lock);
  post(on, &one);
  pthread_mutex_unlock(&lock);
  return DTRUN_OK;
}

static dtrun_status event_create(dtrun_instance* self, int32_t device, dtrun_event** out, dtrun_error* err) {
  dtrun_event* event;
  (void)self;
  if (!is_there(device)) return refuse(err, DTRUN_INVALID_ARGUMENT, "there is no such device");
  event = malloc(sizeof *event);
  if (event == NULL || (event->state = calloc(1, sizeof *event->state)) == NULL) abort();
  event->state->users = 1;
  event->state->recorded = FAULT(NEVER_RECORDED_RUNS);
  *out = event;
  return DTRUN_OK;
}

static void event_destroy(dtrun_instance* self, dtrun_event* event) {
  (void)self;
  pthread_mutex_lock(&lock);
  drop(event->state);
  pthread_mutex_unlock(&lock);
  free(event);
}

static void post_event(const dtrun_stream* on, dtrun_event* event, int what) {
  const task one = {.what = what, .event = event->state, .place = event->state->recorded};
  ++event->state->users;
  post(on, &one);
}

static dtrun_status event_record(dtrun_instance* self, dtrun_event* event, const dtrun_stream* on,
                                 dtrun_error* err) {
  (void)self;
  if (!FAULT(IGNORES_STREAM_FLAGS) && (on->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return refuse(err, DTRUN_UNSUPPORTED, "a flag of dtrun_stream is not known here");
  pthread_mutex_lock(&lock);
  ++event->state->recorded;
  post_event(on, event, RECORD);
  pthread_mutex_unlock(&lock);
  return DTRUN_OK;
}

static dtrun_status event_test(dtrun_instance* self, dtrun_event* event, dtrun_error* err) {
  int reached;
  (void)self, (void)err;
  pthread_mutex_lock(&lock);
  reached = FAULT(EVENTS_ARE_EARLY) || event->state->reached >= event->state->recorded;
  pthread_mutex_unlock(&lock);
  return reached ? DTRUN_OK : DTRUN_PENDING;
}

static dtrun_status event_wait(dtrun_instance* self, dtrun_event* event, const dtrun_stream* on,
                               dtrun_error* err) {
  (void)self, (void)err;
  if (FAULT(WAIT_FORGETS)) return DTRUN_OK;
  pthread_mutex_lock(&lock);
  post_event(on, event, WAIT_EVENT);
  pthread_mutex_unlock(&lock);
  return DTRUN_OK;
}

static dtrun_status counter_wait(dtrun_instance* self, const uint32_t* counter, uint32_t value,
                                 const dtrun_stream* on, dtrun_error* err) {
  const task one = {.what = WAIT_COUNTER, .counter = counter, .value = value};
  (void)self, (void)err;
  if (FAULT(COUNTER_FORGETS)) return DTRUN_OK;
  while (FAULT(COUNTER_BLOCKS) && !counter_reached(&one)) usleep(50);
  pthread_mutex_lock(&lock);
  post(on, &one);
  pthread_mutex_unlock(&lock);
  return DTRUN_OK;
}

static void fill_kind(dtrun_plugin* plugin) {
  static dtrun_device device;
  if (FAULT(NO_DRAFT)) plugin->device_draft = 0;
  DTRUN_INIT(device);
  device.kind = FAULT(KIND_OF_HOST) ? DTRUN_DEVICE_HOST : KIND;
  device.count = count;
  device.current = current;
  device.describe = describe;
  device.memory_of = memory_of;
  device.mem_alloc = mem_alloc;
  device.mem_free = mem_free;
  device.stream_create = stream_create;
  device.stream_destroy = stream_destroy;
  device.stream_capturing = stream_capturing;
  device.copy = copy;
  device.event_create = event_create;
  device.event_destroy = event_destroy;
  device.event_record = event_record;
  device.event_test = event_test;
  device.event_wait = event_wait;
  device.counter_wait = FAULT(NO_COUNTER_WAIT) ? NULL : counter_wait;
  plugin->kind = DTRUN_KIND_DEVICE;
  plugin->device = &device;
}
