// SPDX-License-Identifier: MIT
// Stands in for both libraries in the launcher's test: something that can be preloaded and found in /proc/self/maps.
int nicless_launcher_stub = 1;
