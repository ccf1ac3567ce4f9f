// Reads --sme2 before the flags are parsed.
#pragma once

#include <cstring>

#include "sme2.h"

// The level that XNNPACK may see: the processor's unless the command line limits it.
inline Sme requested_sme(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const char* value = "";
    if (std::strncmp(argv[i], "--sme2=", 7) == 0) value = argv[i] + 7;
    if (std::strcmp(argv[i], "--sme2") == 0 && i + 1 < argc) value = argv[i + 1];
    if (std::strcmp(value, "off") == 0) return Sme::none;
    if (std::strcmp(value, "sme1") == 0) return Sme::sme1;
  }
  return Sme::sme2;
}
