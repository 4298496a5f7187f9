// SPDX-License-Identifier: MIT
// Goal: every mistake that a program can make is answered with the errno or the completion status that mlx5 gives, and
// with the sentence that says what happened; and docs/ERRORS.md shows exactly these.
// Method: each row of the tables is made on two queue pairs of this process, connected over real sockets; what is
// written to stderr is read back.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

struct Outcome {
  std::string answer;
  std::vector<std::string> said;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
    out << outcome.answer;
    for (const std::string& sentence : outcome.said) out << "\n    \"" << sentence << '"';
    return out;
  }
};

struct Section {
  const char* heading;
  const std::vector<Mistake>& mistakes;
};

std::vector<Section> all_sections() {
  return {{"Objects", kMistakesWithObjects},        {"States and attributes", kMistakesWithStates},
          {"Posting", kMistakesInPosting},          {"Memory", kMistakesWithMemory},
          {"Messages", kMistakesInMessages},        {"XRC", kMistakesWithXrc},
          {"Connections", kMistakesWithConnections}};
}

// What is taken down with the bench is part of it: a queue pair says at its end what nobody has heard yet.
Outcome make(const Mistake& mistake) {
  const Hearing hearing;
  Names names;
  Outcome outcome;
  {
    Bench bench(names);
    outcome.answer = mistake.make(bench);
  }
  for (const std::string& sentence : hearing.sentences()) outcome.said.push_back(names.in(sentence));
  return outcome;
}

std::string documentation() {
  std::ostringstream rows;
  for (const Section& section : all_sections()) {
    rows << "\n### " << section.heading << "\n| mistake | answer | what is said |\n|---|---|---|\n";
    for (const Mistake& mistake : section.mistakes) {
      rows << "| " << mistake.what << " | " << mistake.answer << " | ";
      for (const std::string& sentence : mistake.said)
        rows << (&sentence == &mistake.said[0] ? "" : "<br>") << sentence;
      rows << " |\n";
    }
  }
  return rows.str();
}

std::string documented() {
  std::ifstream file(TEST_DATA_DIR "/../docs/ERRORS.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::string begin = "\n### Objects\n";
  const std::size_t start = all.find(begin);
  REQUIRE(start != std::string::npos);
  const std::size_t end = all.find("\n## ", start);
  return all.substr(start, end == std::string::npos ? end : end - start);
}

}  // namespace

TEST_CASE("a mistake gets mlx5's answer, and the sentence that says what it was", "[bad_input]") {
  for (const Section& section : all_sections()) {
    for (const Mistake& mistake : section.mistakes) {
      DYNAMIC_SECTION(mistake.what) {
        CHECK(make(mistake) == Outcome{mistake.answer, mistake.said});
      }
    }
  }
}

TEST_CASE("docs/ERRORS.md lists these mistakes and no others", "[bad_input]") {
  CHECK(documented() == documentation());
}

}  // namespace nicless::test
