/* options.h - options that describe themselves, and the values core hands back.
 *
 * A plugin publishes a constant table of dtrun_option. Core parses and validates what
 * the user wrote against it and gives the plugin a frozen snapshot, so a plugin never
 * sees a missing, mistyped or out-of-range value. The same table makes the manual page
 * (`dtrun plugins describe NAME`), error messages and suggestions. The plugin owns the table, core the
 * snapshot; both are constant, so any thread may read them.
 */
#ifndef DTRUN_ABI_OPTIONS_H
#define DTRUN_ABI_OPTIONS_H

#include "dtrun/abi/error.h"

/* Type of an option, with the spelling of its values in TOML and in default_text. */
enum {
  DTRUN_TYPE_BOOL = 1,     /* true, false */
  DTRUN_TYPE_INT = 2,      /* signed 64 bit */
  DTRUN_TYPE_UINT = 3,     /* 0 to 2^63-1 */
  DTRUN_TYPE_FLOAT = 4,    /* finite */
  DTRUN_TYPE_STRING = 5,   /* UTF-8 */
  DTRUN_TYPE_ENUM = 6,     /* one of `choices` */
  DTRUN_TYPE_BYTES = 7,    /* integer or "64K", "8MiB"; the value is bytes */
  DTRUN_TYPE_DURATION = 8, /* "500ms", "60s", "2m"; the value is nanoseconds */
  DTRUN_TYPE_PATH = 9,     /* relative to the folder of the config file */
  DTRUN_TYPE_LIST = 10     /* list of strings */
};

/* Who must agree on the value. */
enum {
  DTRUN_SCOPE_PROCESS = 1,
  DTRUN_SCOPE_HOST = 2,
  DTRUN_SCOPE_JOB = 3 /* equal on all ranks */
};

/* Bits of dtrun_option.flags. */
enum {
  DTRUN_OPTION_REQUIRED = 1,     /* no default; the user must give a value */
  DTRUN_OPTION_EXPERIMENTAL = 2, /* may change without notice */
  DTRUN_OPTION_SECRET = 4,       /* never printed */
  DTRUN_OPTION_MUST_EXIST = 8,   /* the path must exist when the job starts */
  /* Of a backend, DTRUN_TYPE_STRING: the value names another backend, by its name or by the absolute path
   * of its file, which the plugin opens with dtrun.plugins/1. */
  DTRUN_OPTION_BACKEND = 16
};

typedef struct dtrun_option {
  uint32_t struct_size;
  uint32_t flags;
  const char* key; /* snake_case, unique in the plugin */
  /* One of DTRUN_TYPE_ and one of DTRUN_SCOPE_: 0 is neither. */
  int32_t type;
  int32_t scope;
  const char* default_text;   /* in the spelling of `type`; NULL: unset by default */
  const char* doc;            /* one line, no full stop */
  const char* long_doc;       /* paragraphs, or NULL */
  const char* unit;           /* "ranks", "messages"; NULL for none or where the type says it */
  const char* min_text;       /* inclusive, in the spelling of `type`; NULL: no bound */
  const char* max_text;       /* inclusive */
  const char* const* choices; /* DTRUN_TYPE_ENUM: the values, in the order to print */
  uint64_t choice_count;
  const char* since;       /* dtrun or plugin version that introduced it */
  const char* env_alias;   /* vendor variable with the same meaning, for documentation */
  const char* replaced_by; /* non-NULL: deprecated, use that key */
} dtrun_option;

/* Where a value came from. */
enum {
  DTRUN_ORIGIN_DEFAULT = 0,
  DTRUN_ORIGIN_FILE = 1,
  DTRUN_ORIGIN_ENVIRONMENT = 2,
  DTRUN_ORIGIN_COMMAND_LINE = 3
};

/* A frozen, validated set of values; opaque. Valid as long as the plugin instance. */
typedef struct dtrun_options dtrun_options;

/* Host service "dtrun.options/1". Getters fail only on a key that the plugin's table
 * lacks or gives another type (both are defects of the plugin), and with
 * DTRUN_NOT_FOUND where the option is unset and has no default. All [any]. */
typedef struct dtrun_options_service {
  uint32_t struct_size;
  uint32_t flags;
  /* bool (0 or 1), int, uint, bytes, duration (ns), enum (index into choices) */
  dtrun_status (*get_int)(const dtrun_host* host, const dtrun_options* options, const char* key, int64_t* out,
                          dtrun_error* err);
  dtrun_status (*get_float)(const dtrun_host* host, const dtrun_options* options, const char* key,
                            double* out, dtrun_error* err);
  /* string, path (absolute), enum (its text) */
  dtrun_status (*get_string)(const dtrun_host* host, const dtrun_options* options, const char* key,
                             dtrun_string* out, dtrun_error* err);
  /* DTRUN_TYPE_LIST; *out_items points at *out_count strings */
  dtrun_status (*get_list)(const dtrun_host* host, const dtrun_options* options, const char* key,
                           const dtrun_string** out_items, uint64_t* out_count, dtrun_error* err);
  /* One of DTRUN_ORIGIN_*, and a text such as "train.toml:14:3" for messages. */
  dtrun_status (*get_origin)(const dtrun_host* host, const dtrun_options* options, const char* key,
                             int32_t* out_origin, dtrun_string* out_place, dtrun_error* err);
} dtrun_options_service;

#define DTRUN_OPTIONS_SERVICE "dtrun.options/1"

#endif
