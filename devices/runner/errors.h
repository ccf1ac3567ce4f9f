// The two ways in which the runner ends early. Each text is one sentence for stderr and for --stats_path.
#pragma once

#include <stdexcept>

// Something that was passed is wrong: a flag, a file, a model. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The model could not be run, or a result could not be written. Exit code 1.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
