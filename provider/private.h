/* SPDX-License-Identifier: MIT */
/* The small C interface by which librdmacm.so.1 uses the one engine of the process, which lives in libibverbs.so.1
 * (version node NICLESS_PRIVATE). Not for programs: it changes without notice.
 *
 * Times are nanoseconds of the engine's monotonic clock. Addresses are 16 bytes in network order, IPv4 as
 * ::ffff:a.b.c.d; UDP ports are in host order. Functions return 0 or an errno value.
 */
#ifndef NICLESS_PROVIDER_PRIVATE_H
#define NICLESS_PROVIDER_PRIVATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NICLESS_NEVER UINT64_MAX
#define NICLESS_MAD_BYTES 256

struct nicless_endpoint {
  uint8_t address[16];
  uint16_t port;
};

/* A UDP socket with an engine whose QP 1 carries the connection manager's datagrams. */
struct nicless_gsi;

/* The connection manager, as the progress thread calls it. None of the calls is made with a lock of the engine held,
 * and no two at the same time; all may use every function of this header and of verbs.h. */
struct nicless_cm_agent {
  /* A management datagram arrived at QP 1 of `at`; `local` is the address and port it was sent to. */
  void (*on_mad)(void* agent, uint64_t now, struct nicless_gsi* at, const struct nicless_endpoint* remote,
                 const struct nicless_endpoint* local, const uint8_t mad[NICLESS_MAD_BYTES]);
  /* ICMP says that nobody listens at `remote` (port unreachable) for a datagram that this process has sent, whether of
   * the connection manager or of a queue pair. */
  void (*on_unreachable)(void* agent, uint64_t now, const struct nicless_endpoint* remote);
  void (*on_deadline)(void* agent, uint64_t now);
  /* The agent's next deadline, or NICLESS_NEVER. */
  uint64_t (*next_deadline)(void* agent);
};

/* Once per process; a second call replaces the first. `agent` lives until the process ends. */
int nicless_cm_register(const struct nicless_cm_agent* calls, void* agent);
/* The agent's next deadline may have moved: wakes the progress thread if it has to be earlier. From any thread. */
void nicless_cm_deadline_changed(void);

/* Opens a UDP socket for the connection manager, bound to `address` (AF_INET or AF_INET6; a wildcard is dual stack
 * where it is IPv6; port 0 takes an ephemeral one). EADDRINUSE, EACCES, EADDRNOTAVAIL as bind(2) gives them. flags:
 * NICLESS_GSI_V6ONLY. *port is the port it got. In strict RoCE v2 mode every call gives the
 * process's one socket, and *port is the one asked for: the port space is the caller's. */
#define NICLESS_GSI_V6ONLY 2
int nicless_gsi_open(const struct sockaddr* address, int flags, struct nicless_gsi** gsi, uint16_t* port);
/* The process's own endpoint for outgoing connections: opened at the first call, never closed, shared by all. */
int nicless_gsi_shared(struct nicless_gsi** gsi, uint16_t* port);
/* No call about it reaches the agent once this has returned (unless called from within such a call). */
void nicless_gsi_close(struct nicless_gsi* gsi);
/* Sends one management datagram from the address `local` (port ignored) to QP 1 behind `remote`. Fails as sendmsg(2).
 */
int nicless_gsi_send(struct nicless_gsi* gsi, const uint8_t local[16], const struct nicless_endpoint* remote,
                     uint8_t traffic_class, const uint8_t mad[NICLESS_MAD_BYTES]);

/* The UDP port of QP 1 behind a service: that of the service itself, or 4791 in strict RoCE v2 mode. */
uint16_t nicless_gsi_port_of(uint16_t service_port);
/* Whether the port space of services is the operating system's: not in strict RoCE v2 mode, where the caller numbers.
 */
int nicless_services_are_sockets(void);

/* The UDP port behind a queue pair of this process stays open, also without any queue pair, until it was released as
 * often: by a connection that stands, whose peer takes a closed port for its end. ENOENT: no such port here; in strict
 * RoCE v2 mode always, where the port does not close. */
int nicless_port_hold(uint32_t qpn);
void nicless_port_release(uint32_t qpn);
/* The numbers that queue pairs behind this UDP port of a peer have: how many, from *first on. 0 in strict RoCE v2 mode,
 * where the port says nothing about them. */
uint32_t nicless_qpns_behind(uint16_t port, uint32_t* first);

uint64_t nicless_now(void);
uint64_t nicless_random(void);

/* One sentence for the person at the terminal: printed once as "nicless: <sentence>" if NICLESS_LOG asks for the level.
 */
enum nicless_log_level { NICLESS_LOG_ERROR = 1, NICLESS_LOG_WARN = 2, NICLESS_LOG_INFO = 3, NICLESS_LOG_DEBUG = 4 };
void nicless_log(enum nicless_log_level level, const char* sentence);

/* A number that changes in a forked child: objects made before the fork are dead there. */
uint64_t nicless_process_generation(void);

/* The folder that stands for / in answers about /dev/infiniband and /sys/class/infiniband*, or NULL. It holds files
 * and folders that never change, and lives as long as the process. For libnicless_paths.so. */
const char* nicless_file_tree(void);
/* Writes into `room` the path of a file that holds what the counter at this path (.../hw_counters/NAME) counts in this
 * process now; 0, or -1 where the tree's own file will do. Leaves errno alone. For libnicless_paths.so. */
int nicless_counter_file(const char* path, char* room, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
