// SPDX-License-Identifier: MIT
// rsockets, which nicless has not: rsocket(7). rsocket() says so once, in a sentence; no other call can then be given a
// descriptor that is one, so they answer EBADF as they do for any other number.
#include <rdma/rsocket.h>
#include <sys/epoll.h>

#include <cerrno>

#include "provider/private.h"

namespace {

int refuse_new(const char* sentence) {
  nicless_log(NICLESS_LOG_WARN, sentence);
  errno = EOPNOTSUPP;
  return -1;
}

int refuse_number() {
  errno = EBADF;
  return -1;
}

}  // namespace

extern "C" {

// Release 65 and later; rsocket.h of 44 does not declare them.
int repoll_create(int size);
int repoll_ctl(int epoll, int operation, int socket, epoll_event* event);
int repoll_wait(int epoll, epoll_event* events, int count, int timeout);

int rsocket(int, int, int) {
  return refuse_new("rsocket: EOPNOTSUPP, nicless has no rsockets yet; use an ordinary socket or rdma_cm");
}
int repoll_create(int) {
  return refuse_new("repoll_create: EOPNOTSUPP, nicless has no rsockets yet; use epoll_create");
}

int rbind(int, const sockaddr*, socklen_t) {
  return refuse_number();
}
int rlisten(int, int) {
  return refuse_number();
}
int raccept(int, sockaddr*, socklen_t*) {
  return refuse_number();
}
int rconnect(int, const sockaddr*, socklen_t) {
  return refuse_number();
}
int rshutdown(int, int) {
  return refuse_number();
}
int rclose(int) {
  return refuse_number();
}
ssize_t rrecv(int, void*, size_t, int) {
  return refuse_number();
}
ssize_t rrecvfrom(int, void*, size_t, int, sockaddr*, socklen_t*) {
  return refuse_number();
}
ssize_t rrecvmsg(int, msghdr*, int) {
  return refuse_number();
}
ssize_t rsend(int, const void*, size_t, int) {
  return refuse_number();
}
ssize_t rsendto(int, const void*, size_t, int, const sockaddr*, socklen_t) {
  return refuse_number();
}
ssize_t rsendmsg(int, const msghdr*, int) {
  return refuse_number();
}
ssize_t rread(int, void*, size_t) {
  return refuse_number();
}
ssize_t rreadv(int, const iovec*, int) {
  return refuse_number();
}
ssize_t rwrite(int, const void*, size_t) {
  return refuse_number();
}
ssize_t rwritev(int, const iovec*, int) {
  return refuse_number();
}
int rpoll(pollfd*, nfds_t, int) {
  return refuse_number();
}
int rselect(int, fd_set*, fd_set*, fd_set*, timeval*) {
  return refuse_number();
}
int rgetpeername(int, sockaddr*, socklen_t*) {
  return refuse_number();
}
int rgetsockname(int, sockaddr*, socklen_t*) {
  return refuse_number();
}
int rsetsockopt(int, int, int, const void*, socklen_t) {
  return refuse_number();
}
int rgetsockopt(int, int, int, void*, socklen_t*) {
  return refuse_number();
}
int rfcntl(int, int, ...) {
  return refuse_number();
}
off_t riomap(int, void*, size_t, int, int, off_t) {
  return refuse_number();
}
int riounmap(int, void*, size_t) {
  return refuse_number();
}
// The count that was not written tells the failure: riowrite returns a size_t.
size_t riowrite(int, const void*, size_t, off_t, int) {
  return static_cast<size_t>(refuse_number());
}
int repoll_ctl(int, int, int, epoll_event*) {
  return refuse_number();
}
int repoll_wait(int, epoll_event*, int, int) {
  return refuse_number();
}

}  // extern "C"
