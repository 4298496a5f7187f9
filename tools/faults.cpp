// SPDX-License-Identifier: MIT
// nicless-faults NAME VALUE: whether `nicless run --NAME VALUE` says something that can be done. Silent and 0 if so,
// else one sentence on stderr and 2. The launcher asks before it starts a program; the libraries read the same words
// later.
#include <cstdio>
#include <string>

#include "wire/io/fault_options.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: nicless-faults NAME VALUE\n", stderr);
    return 2;
  }
  nicless::wire::FaultOptions options;
  const auto set = nicless::wire::set_fault_option(argv[1], argv[2], options);
  if (set) return 0;
  const std::string sentence = set.error().why + "\n";
  std::fputs(sentence.c_str(), stderr);
  return 2;
}
