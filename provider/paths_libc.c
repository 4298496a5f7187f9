/* SPDX-License-Identifier: MIT */
/* The functions of libc that stand before libc's own: each puts the path through nicless_answer and calls the next one
 * of its name. Also the forms that fortified programs (__open_2, __realpath_chk) and those linked before glibc 2.33
 * (__xstat) call. */

/* The plain names are wanted, not their aliases for large files or the checked inline forms. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "provider/paths.h"

#define EXPORT __attribute__((visibility("default")))

/* The next function of this name behind this library. Found once; two threads find the same. */
static void* next_function(void** found, const char* name) {
  void* function = __atomic_load_n(found, __ATOMIC_RELAXED);
  if (function == NULL) {
    function = dlsym(RTLD_NEXT, name);
    __atomic_store_n(found, function, __ATOMIC_RELAXED);
  }
  return function;
}

/* Declares `next`, the next function called `name`. */
#define NEXT(name)               \
  static void* found_##name;     \
  __typeof__(&name) next = NULL; \
  *(void**)&next = next_function(&found_##name, #name)

/* ---- status ---- */

/* A device node is a link in the tree: whoever asks without following links is told of the device all the same. */
static int follow(const char* path, const char* answer, int flags) {
  return answer != path && nicless_is_node(path) ? flags & ~AT_SYMLINK_NOFOLLOW : flags;
}

EXPORT int stat(const char* path, struct stat* status) {
  struct nicless_path room;
  NEXT(stat);
  return next(nicless_answer(path, &room), status);
}
EXPORT int stat64(const char* path, struct stat64* status) {
  struct nicless_path room;
  NEXT(stat64);
  return next(nicless_answer(path, &room), status);
}
EXPORT int fstatat(int folder, const char* path, struct stat* status, int flags) {
  struct nicless_path room;
  NEXT(fstatat);
  const char* answer = nicless_answer(path, &room);
  return next(folder, answer, status, follow(path, answer, flags));
}
EXPORT int fstatat64(int folder, const char* path, struct stat64* status, int flags) {
  struct nicless_path room;
  NEXT(fstatat64);
  const char* answer = nicless_answer(path, &room);
  return next(folder, answer, status, follow(path, answer, flags));
}
EXPORT int lstat(const char* path, struct stat* status) {
  struct nicless_path room;
  const char* answer = nicless_answer(path, &room);
  if (answer != path) return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
  NEXT(lstat);
  return next(path, status);
}
EXPORT int lstat64(const char* path, struct stat64* status) {
  struct nicless_path room;
  const char* answer = nicless_answer(path, &room);
  if (answer != path) return fstatat64(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
  NEXT(lstat64);
  return next(path, status);
}
EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* status) {
  struct nicless_path room;
  NEXT(statx);
  const char* answer = nicless_answer(path, &room);
  return next(folder, answer, follow(path, answer, flags), mask, status);
}

#ifdef __x86_64__
/* Before glibc 2.33 stat was an inline call of these; version 1 is struct stat as it is today. */
int __xstat(int version, const char* path, struct stat* status);
int __xstat64(int version, const char* path, struct stat64* status);
int __lxstat(int version, const char* path, struct stat* status);
int __lxstat64(int version, const char* path, struct stat64* status);
int __fxstatat(int version, int folder, const char* path, struct stat* status, int flags);
int __fxstatat64(int version, int folder, const char* path, struct stat64* status, int flags);

EXPORT int __fxstatat(int version, int folder, const char* path, struct stat* status, int flags) {
  if (version == 1) return fstatat(folder, path, status, flags);
  errno = EINVAL;
  return -1;
}
EXPORT int __fxstatat64(int version, int folder, const char* path, struct stat64* status, int flags) {
  if (version == 1) return fstatat64(folder, path, status, flags);
  errno = EINVAL;
  return -1;
}
EXPORT int __xstat(int version, const char* path, struct stat* status) {
  return __fxstatat(version, AT_FDCWD, path, status, 0);
}
EXPORT int __xstat64(int version, const char* path, struct stat64* status) {
  return __fxstatat64(version, AT_FDCWD, path, status, 0);
}
EXPORT int __lxstat(int version, const char* path, struct stat* status) {
  return __fxstatat(version, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
EXPORT int __lxstat64(int version, const char* path, struct stat64* status) {
  return __fxstatat64(version, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
#endif

/* ---- access ---- */

EXPORT int access(const char* path, int mode) {
  struct nicless_path room;
  NEXT(access);
  return next(nicless_answer(path, &room), mode);
}
EXPORT int faccessat(int folder, const char* path, int mode, int flags) {
  struct nicless_path room;
  NEXT(faccessat);
  return next(folder, nicless_answer(path, &room), mode, flags);
}
EXPORT int eaccess(const char* path, int mode) {
  struct nicless_path room;
  NEXT(eaccess);
  return next(nicless_answer(path, &room), mode);
}
EXPORT int euidaccess(const char* path, int mode) {
  struct nicless_path room;
  NEXT(euidaccess);
  return next(nicless_answer(path, &room), mode);
}

/* ---- extended attributes (ls -l asks for access control lists) ---- */

EXPORT ssize_t getxattr(const char* path, const char* name, void* value, size_t size) {
  struct nicless_path room;
  NEXT(getxattr);
  return next(nicless_answer(path, &room), name, value, size);
}
EXPORT ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) {
  struct nicless_path room;
  NEXT(lgetxattr);
  return next(nicless_answer(path, &room), name, value, size);
}
EXPORT ssize_t listxattr(const char* path, char* list, size_t size) {
  struct nicless_path room;
  NEXT(listxattr);
  return next(nicless_answer(path, &room), list, size);
}
EXPORT ssize_t llistxattr(const char* path, char* list, size_t size) {
  struct nicless_path room;
  NEXT(llistxattr);
  return next(nicless_answer(path, &room), list, size);
}

/* ---- open ---- */

/* The mode is there only if the flags can create a file. */
#define MODE_OF(flags, mode)                                        \
  mode_t mode = 0;                                                  \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list list;                                                   \
    va_start(list, flags);                                          \
    mode = va_arg(list, mode_t);                                    \
    va_end(list);                                                   \
  }

EXPORT int open(const char* path, int flags, ...) {
  struct nicless_path room;
  MODE_OF(flags, mode)
  NEXT(open);
  return next(nicless_answer(path, &room), flags, mode);
}
EXPORT int open64(const char* path, int flags, ...) {
  struct nicless_path room;
  MODE_OF(flags, mode)
  NEXT(open64);
  return next(nicless_answer(path, &room), flags, mode);
}
EXPORT int openat(int folder, const char* path, int flags, ...) {
  struct nicless_path room;
  MODE_OF(flags, mode)
  NEXT(openat);
  return next(folder, nicless_answer(path, &room), flags, mode);
}
EXPORT int openat64(int folder, const char* path, int flags, ...) {
  struct nicless_path room;
  MODE_OF(flags, mode)
  NEXT(openat64);
  return next(folder, nicless_answer(path, &room), flags, mode);
}

int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int folder, const char* path, int flags);
int __openat64_2(int folder, const char* path, int flags);

EXPORT int __open_2(const char* path, int flags) {
  struct nicless_path room;
  NEXT(__open_2);
  return next(nicless_answer(path, &room), flags);
}
EXPORT int __open64_2(const char* path, int flags) {
  struct nicless_path room;
  NEXT(__open64_2);
  return next(nicless_answer(path, &room), flags);
}
EXPORT int __openat_2(int folder, const char* path, int flags) {
  struct nicless_path room;
  NEXT(__openat_2);
  return next(folder, nicless_answer(path, &room), flags);
}
EXPORT int __openat64_2(int folder, const char* path, int flags) {
  struct nicless_path room;
  NEXT(__openat64_2);
  return next(folder, nicless_answer(path, &room), flags);
}

EXPORT FILE* fopen(const char* path, const char* mode) {
  struct nicless_path room;
  NEXT(fopen);
  return next(nicless_answer(path, &room), mode);
}
EXPORT FILE* fopen64(const char* path, const char* mode) {
  struct nicless_path room;
  NEXT(fopen64);
  return next(nicless_answer(path, &room), mode);
}

/* ---- folders ---- */

EXPORT DIR* opendir(const char* path) {
  struct nicless_path room;
  NEXT(opendir);
  return next(nicless_answer(path, &room));
}
EXPORT int scandir(const char* path, struct dirent*** list, int (*select)(const struct dirent*),
                   int (*compare)(const struct dirent**, const struct dirent**)) {
  struct nicless_path room;
  NEXT(scandir);
  return next(nicless_answer(path, &room), list, select, compare);
}
EXPORT int scandir64(const char* path, struct dirent64*** list, int (*select)(const struct dirent64*),
                     int (*compare)(const struct dirent64**, const struct dirent64**)) {
  struct nicless_path room;
  NEXT(scandir64);
  return next(nicless_answer(path, &room), list, select, compare);
}
EXPORT int chdir(const char* path) {
  struct nicless_path room;
  NEXT(chdir);
  return next(nicless_answer(path, &room));
}

/* ---- links ---- */

EXPORT char* realpath(const char* path, char* resolved) {
  struct nicless_path room;
  NEXT(realpath);
  return next(nicless_answer(path, &room), resolved);
}
char* __realpath_chk(const char* path, char* resolved, size_t size);
EXPORT char* __realpath_chk(const char* path, char* resolved, size_t size) {
  struct nicless_path room;
  NEXT(__realpath_chk);
  return next(nicless_answer(path, &room), resolved, size);
}
EXPORT char* canonicalize_file_name(const char* path) {
  struct nicless_path room;
  NEXT(canonicalize_file_name);
  return next(nicless_answer(path, &room));
}
EXPORT ssize_t readlink(const char* path, char* target, size_t size) {
  struct nicless_path room;
  NEXT(readlink);
  return next(nicless_answer(path, &room), target, size);
}
EXPORT ssize_t readlinkat(int folder, const char* path, char* target, size_t size) {
  struct nicless_path room;
  NEXT(readlinkat);
  return next(folder, nicless_answer(path, &room), target, size);
}
ssize_t __readlink_chk(const char* path, char* target, size_t size, size_t room);
EXPORT ssize_t __readlink_chk(const char* path, char* target, size_t size, size_t target_room) {
  struct nicless_path room;
  NEXT(__readlink_chk);
  return next(nicless_answer(path, &room), target, size, target_room);
}
ssize_t __readlinkat_chk(int folder, const char* path, char* target, size_t size, size_t room);
EXPORT ssize_t __readlinkat_chk(int folder, const char* path, char* target, size_t size, size_t target_room) {
  struct nicless_path room;
  NEXT(__readlinkat_chk);
  return next(folder, nicless_answer(path, &room), target, size, target_room);
}
