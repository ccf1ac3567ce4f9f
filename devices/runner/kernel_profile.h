// Which kernels really ran: samples of the program counter of all threads, named after the run.
#pragma once

#include <string>

// Samples from construction to destruction; one at a time. Everything is allocated before the first sample.
class KernelProfile {
 public:
  KernelProfile();
  ~KernelProfile();

  // Ends the sampling and returns the JSON. A sample whose function has no name in its library's symbol table is
  // counted as unresolved under that library; its name is never guessed.
  std::string stop();
};
