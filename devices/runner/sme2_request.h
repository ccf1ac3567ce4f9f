// Reads --sme2 before the flags are parsed.
#pragma once

#include <cstring>

// True if the command line contains --sme2=off or --sme2 off.
inline bool requests_sme2_off(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--sme2=off") == 0) return true;
    if (std::strcmp(argv[i], "--sme2") == 0 && i + 1 < argc && std::strcmp(argv[i + 1], "off") == 0) return true;
  }
  return false;
}
