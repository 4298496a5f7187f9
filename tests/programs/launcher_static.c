// SPDX-License-Identifier: MIT
// A statically linked program, which no preload reaches.
int main(void) {
  return 0;
}
