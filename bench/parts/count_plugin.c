// A plugin of qemu-user that counts the executed instructions of one thread, in total and by function:
//
//   gcc -O2 -shared -fPIC -DPLUGIN_VERSION=1 count_plugin.c -o libcount.so
//   qemu-aarch64 -plugin ./libcount.so,top=12 -d plugin ./program      # on stderr: instructions TOTAL, then 12 lines
//
// PLUGIN_VERSION is 1 up to qemu 8, and 2 for later versions. Debian has no package with qemu's header of plugins, so
// this file declares the functions that it calls; they are the same in all these versions.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION 1
#endif
#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb*, void (*)(unsigned, void*), int flags, void*);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void*), void*);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn*);
void qemu_plugin_outs(const char*);
EXPORTED int qemu_plugin_version = PLUGIN_VERSION;

struct function {
  struct function* next;
  uint64_t instructions;
  char* name;
};

/// A block of instructions without a branch, as qemu translated it.
struct block {
  struct function* in;
  uint64_t instructions;
};

static struct function* functions[4096];   // by the hash of the name
static size_t function_count, lines;

static struct function* function_of(const char* name) {
  if (!name) name = "?";
  uint64_t hash = 14695981039346656037ULL;
  for (const char* c = name; *c; ++c) hash = (hash ^ (unsigned char)*c) * 1099511628211ULL;
  struct function** const bucket = &functions[hash % (sizeof functions / sizeof *functions)];
  for (struct function* f = *bucket; f; f = f->next)
    if (!strcmp(f->name, name)) return f;
  struct function* const added = calloc(1, sizeof *added);
  if (!added) abort();
  added->name = strdup(name);
  added->next = *bucket;
  *bucket = added;
  ++function_count;
  return added;
}

static void block_begins(unsigned cpu, void* data) {
  (void)cpu;
  const struct block* const b = data;
  b->in->instructions += b->instructions;
}

static void block_translated(plugin_id id, struct qemu_plugin_tb* translated) {
  (void)id;
  struct block* const b = malloc(sizeof *b);
  if (!b) abort();
  b->in = function_of(qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(translated, 0)));
  b->instructions = qemu_plugin_tb_n_insns(translated);
  qemu_plugin_register_vcpu_tb_exec_cb(translated, block_begins, 0, b);
}

static int more_instructions(const void* a, const void* b) {
  const uint64_t x = (*(struct function* const*)a)->instructions, y = (*(struct function* const*)b)->instructions;
  return (x < y) - (x > y);
}

static void program_ended(plugin_id id, void* data) {
  (void)id;
  (void)data;
  struct function** const all = malloc((function_count + 1) * sizeof *all);
  if (!all) abort();
  size_t count = 0;
  uint64_t total = 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    for (struct function* f = functions[i]; f; f = f->next) {
      all[count++] = f;
      total += f->instructions;
    }
  qsort(all, count, sizeof *all, more_instructions);
  char line[300];
  snprintf(line, sizeof line, "instructions %llu\n", (unsigned long long)total);
  qemu_plugin_outs(line);
  for (size_t i = 0; i < count && i < lines; ++i) {
    snprintf(line, sizeof line, "%6.2f %% %14llu %.250s\n", 100.0 * (double)all[i]->instructions / (double)total,
             (unsigned long long)all[i]->instructions, all[i]->name);
    qemu_plugin_outs(line);
  }
  free(all);
}

EXPORTED int qemu_plugin_install(plugin_id id, const void* machine, int count, char** options) {
  (void)machine;
  for (int i = 0; i < count; ++i)
    if (!strncmp(options[i], "top=", 4)) lines = strtoul(options[i] + 4, NULL, 10);
  qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
  qemu_plugin_register_atexit_cb(id, program_ended, NULL);
  return 0;
}
