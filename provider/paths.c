/* SPDX-License-Identifier: MIT */
#include "provider/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/private.h"

static const char kDevices[] = "/dev/infiniband";
static const char kClasses[] = "/sys/class/infiniband"; /* and infiniband_verbs, infiniband_mad, ... */

static int is_device_path(const char* path) {
  const size_t length = sizeof kDevices - 1;
  return strncmp(path, kDevices, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int is_class_path(const char* path) {
  return strncmp(path, kClasses, sizeof kClasses - 1) == 0;
}

static int is_awake(void) {
  const char* paths = getenv("NICLESS_PATHS");
  return paths != NULL && strcmp(paths, "1") == 0;
}

const char* nicless_answer(const char* path, struct nicless_path* room) {
  if (path == NULL || path[0] != '/' || !(is_device_path(path) || is_class_path(path)) || !is_awake()) return path;
  const int saved = errno;
  const char* root = nicless_file_tree();
  errno = saved;
  if (root == NULL) return path;
  if (strstr(path, "/hw_counters/") != NULL && nicless_counter_file(path, room->text, sizeof room->text) == 0) {
    return room->text;
  }
  const size_t root_bytes = strlen(root);
  const size_t path_bytes = strlen(path);
  if (root_bytes + path_bytes >= sizeof room->text) return path;
  memcpy(room->text, root, root_bytes);
  memcpy(room->text + root_bytes, path, path_bytes + 1);
  return room->text;
}

int nicless_is_node(const char* path) {
  return path != NULL && strncmp(path, kDevices, sizeof kDevices - 1) == 0 && path[sizeof kDevices - 1] == '/';
}
