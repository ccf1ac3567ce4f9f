// The two errors that end the runner. Each text is one sentence for stderr and for --stats_path.
#pragma once

#include <stdexcept>

// A flag, a file or a model that the user passed is wrong. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The model cannot be run, or a result cannot be written. Exit code 1.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
