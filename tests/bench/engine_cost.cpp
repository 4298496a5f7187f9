// SPDX-License-Identifier: MIT
// What the engine costs without a socket: SENDs from one engine to another, whose stages are timed one by one.
//
//   engine_cost [BYTES [ITERATIONS]]     prints the mean nanoseconds of each stage
//
// Its caches and branch predictors are warm, which they are not between system calls: the least it can be.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/loopback.h"
#include "tests/sim/pair.h"
#include "wire/packet/icrc.h"

namespace nicless::bench {
namespace {

class Stage {
 public:
  explicit Stage(const char* name) : name_(name) {}
  template <typename F>
  auto time(F&& f) {
    const double start = now_seconds();
    auto result = f();
    seconds_ += now_seconds() - start;
    return result;
  }
  void print(int iterations) const { std::printf("%-24s %7.1f ns\n", name_, seconds_ * 1e9 / iterations); }

 private:
  const char* const name_;
  double seconds_ = 0;
};

int run(int size, int iterations) {
  sim::ExactPair pair;
  auto from = pair.a.make_buffer(static_cast<std::size_t>(size));
  auto to = pair.b.make_buffer(static_cast<std::size_t>(size));
  Stage post{"post"}, build{"build a request"}, seal{"its ICRC"}, receive{"receive it"}, answer{"build its answer"};
  Stage retire{"receive the answer"}, deadline{"next deadline"}, clock{"(the clock itself)"};
  wire::OutDatagram out;
  queue::Completion completion;
  const std::vector<queue::Sge> source{from.sge(0, from.bytes().size())};
  const std::vector<queue::Sge> target{to.sge(0, to.bytes().size())};
  queue::Wqe wqe;
  wqe.signaled = true;
  wqe.sges = source;
  for (int i = 0; i < iterations; ++i) {
    static_cast<void>(pair.b.post_recv(1, target));
    post.time([&] { return pair.a.post_send(pair.now, wqe).has_value(); });
    build.time([&] { return pair.a_engine.next_datagram(pair.now, out); });
    seal.time([&] { return wire::seal(out, 0), 0; });
    const auto request = wire::to_bytes(out);
    receive.time([&] { return pair.b_engine.on_datagram(pair.now, {request, out.from, out.to, {}}), 0; });
    answer.time([&] { return pair.b_engine.next_datagram(pair.now, out); });
    wire::seal(out, 0);
    const auto response = wire::to_bytes(out);
    retire.time([&] { return pair.a_engine.on_datagram(pair.now, {response, out.from, out.to, {}}), 0; });
    deadline.time([&] { return pair.a_engine.next_deadline(); });
    clock.time([] { return 0; });
    while (pair.a_engine.next_datagram(pair.now, out) || pair.b_engine.next_datagram(pair.now, out)) {
    }
    pair.a_engine.on_sent();
    pair.b_engine.on_sent();
    if (pair.a.send_cq().poll(completion) != 1 || pair.b.recv_cq().poll(completion) != 1) return 1;
  }
  for (const Stage* stage : {&post, &build, &seal, &receive, &answer, &retire, &deadline, &clock}) {
    stage->print(iterations);
  }
  return 0;
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  const int bytes = argc > 1 ? std::atoi(argv[1]) : 64;
  const int iterations = argc > 2 ? std::atoi(argv[2]) : 200000;
  return nicless::bench::run(bytes, iterations);
}
