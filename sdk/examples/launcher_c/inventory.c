/* inventory.c - a launcher in C11 that finds the hosts of an inventory file, and says how dtrun is started on them:
 *
 *   SITE_INVENTORY=hosts.ini dtrun --plugin-dir out --set cluster.from=inventory -- ./train
 *
 * A line of the file is "NAME slots=RANKS"; "[GROUP]" opens a group; '#' begins a comment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtrun/abi.h"

#define INVENTORY "SITE_INVENTORY"

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_options* options; /* live as long as this */
  const dtrun_options_service* get;
};

static const dtrun_option kOptions[] = {
    {.struct_size = sizeof(dtrun_option),
     .key = "group",
     .type = DTRUN_TYPE_STRING,
     .scope = DTRUN_SCOPE_JOB,
     .default_text = "",
     .doc = "the group of the inventory to use; empty: every group"},
    {.struct_size = sizeof(dtrun_option),
     .key = "shell",
     .type = DTRUN_TYPE_STRING,
     .scope = DTRUN_SCOPE_JOB,
     .default_text = "ssh",
     .doc = "the command that runs another one on a host"},
};

/* The hosts that were read; names are owned. */
typedef struct {
  dtrun_allocated_host* hosts;
  uint64_t count;
} Hosts;

static void free_hosts(Hosts* hosts) {
  for (uint64_t i = 0; i < hosts->count; ++i) free((void*)hosts->hosts[i].name);
  free(hosts->hosts);
}

/* Any failure but DTRUN_NOT_FOUND says that the platform is there, and that something is wrong with it. */
static dtrun_status contradiction(dtrun_error* err, const char* path, const char* what, const char* name) {
  char text[400];
  snprintf(text, sizeof text, INVENTORY "='%.200s' %s '%.100s'", path, what, name);
  return dtrun_error_set(err, DTRUN_FAILED_PRECONDITION, -1, text);
}

static dtrun_status add(Hosts* to, const char* path, const char* name, int slots, dtrun_error* err) {
  for (uint64_t i = 0; i < to->count; ++i) {
    if (strcmp(to->hosts[i].name, name) == 0) return contradiction(err, path, "has twice the host", name);
  }
  dtrun_allocated_host* const more = realloc(to->hosts, (to->count + 1) * sizeof *more);
  char* const copy = malloc(strlen(name) + 1);
  if (more != NULL) to->hosts = more;
  if (more == NULL || copy == NULL) {
    free(copy);
    return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for the hosts");
  }
  dtrun_allocated_host* const host = &to->hosts[to->count++];
  DTRUN_INIT(*host);
  host->name = strcpy(copy, name);
  host->slots = slots;
  return DTRUN_OK;
}

static dtrun_status read_hosts(FILE* file, const char* path, const char* group, Hosts* to, dtrun_error* err) {
  char line[512], in[128] = "";
  while (fgets(line, sizeof line, file) != NULL) {
    char name[128];
    int slots = 0;
    line[strcspn(line, "#")] = '\0';
    if (sscanf(line, " [%127[^]]]", in) == 1 || sscanf(line, "%127s", name) != 1) continue;
    if (group[0] != '\0' && strcmp(in, group) != 0) continue;
    if (strstr(line, "slots=") != NULL && (sscanf(strstr(line, "slots="), "slots=%4d", &slots) != 1 || slots <= 0))
      return contradiction(err, path, "has no number of slots for", name);
    const dtrun_status status = add(to, path, name, slots, err);
    if (status != DTRUN_OK) return status;
  }
  return to->count > 0 ? DTRUN_OK : contradiction(err, path, "names no host of the group", group);
}

/* Flags of the upper half change what is asked: a plugin that does not know one does not do what it is asked for. */
static dtrun_status unknown_flags(uint32_t flags, dtrun_error* err) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND) == 0) return DTRUN_OK;
  return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "the call has a flag that this plugin does not know");
}

static dtrun_status find_hosts(dtrun_instance* self, const dtrun_hosts_query* query, const dtrun_hosts_sink* sink,
                               dtrun_error* err) {
  /* Not getenv: dtrun asks for an environment of its choice. */
  const char* const path = query->variable(query, INVENTORY);
  dtrun_status status = unknown_flags(query->flags | sink->flags, err);
  if (status != DTRUN_OK) return status;
  if (path == NULL) return dtrun_error_set(err, DTRUN_NOT_FOUND, -1, INVENTORY " is unset; name the inventory file");
  dtrun_string group;
  status = self->get->get_string(self->host, self->options, "group", &group, err);
  if (status != DTRUN_OK) return status;
  FILE* const file = fopen(path, "re");
  if (file == NULL) return contradiction(err, path, "cannot be opened; correct", INVENTORY);
  Hosts hosts = {NULL, 0};
  status = read_hosts(file, path, group.data, &hosts, err);
  fclose(file);
  if (status == DTRUN_OK) {
    dtrun_allocation allocation;
    DTRUN_INIT(allocation);
    allocation.hosts = hosts.hosts;
    allocation.host_count = hosts.count;
    allocation.evidence = INVENTORY;
    status = sink->allocation(sink->context, &allocation, err);
  }
  free_hosts(&hosts);
  return status;
}

/* "ssh HOST dtrun ...": a command for each host. It hands on its standard input, by which the host gets the job's key. */
static dtrun_status connect_hosts(dtrun_instance* self, const dtrun_connect_query* query, const dtrun_connect_sink* sink,
                                  dtrun_error* err) {
  dtrun_string shell;
  dtrun_status status = unknown_flags(query->flags | sink->flags, err);
  if (status == DTRUN_OK) status = self->get->get_string(self->host, self->options, "shell", &shell, err);
  if (status != DTRUN_OK) return status;
  const char** const argv = calloc(query->argc + 2, sizeof *argv);
  if (argv == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a command");
  for (uint64_t i = 0; status == DTRUN_OK && i < query->host_count; ++i) {
    argv[0] = shell.data;
    argv[1] = query->hosts[i];
    memcpy(argv + 2, query->argv, query->argc * sizeof *argv);
    dtrun_connect_command command;
    DTRUN_INIT(command);
    command.argv = argv;
    command.argc = query->argc + 2;
    command.hosts = &i;
    command.host_count = 1;
    status = sink->command(sink->context, &command, err);
  }
  free(argv);
  return status;
}

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_status status = unknown_flags(params->flags, err);
  if (status != DTRUN_OK) return status;
  dtrun_instance* const self = calloc(1, sizeof *self);
  if (self == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for an instance");
  self->host = params->host;
  self->options = params->options;
  self->get = self->host->get_service(self->host, DTRUN_OPTIONS_SERVICE);
  *out = self;
  return DTRUN_OK;
}

static void shut_down(dtrun_instance* self) { free(self); }

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_launcher launcher;
  static dtrun_plugin plugin;
  (void)host;
  (void)err;
  DTRUN_INIT(launcher);
  launcher.find_hosts = find_hosts;
  launcher.connect = connect_hosts;
  DTRUN_PLUGIN_INIT(plugin);
  plugin.kind = DTRUN_KIND_LAUNCHER;
  plugin.name = "inventory";
  plugin.version = "1.0";
  plugin.vendor = "dtrun examples";
  plugin.license = "Apache-2.0";
  plugin.summary = "the hosts of an inventory file";
  plugin.options = kOptions;
  plugin.option_count = sizeof kOptions / sizeof kOptions[0];
  plugin.init = init;
  plugin.shutdown = shut_down;
  plugin.launcher = &launcher;
  *out = &plugin;
  return DTRUN_OK;
}
