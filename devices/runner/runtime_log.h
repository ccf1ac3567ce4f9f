// The log of the runtime: kept off stderr, so the user reads one line instead of twenty.
#pragma once

#include <string>

// Redirects the runtime's log to this module; call before any other function of the runtime.
void catch_runtime_log();

// Forgets the errors so far: what a step recovered from is not the cause of a later step's failure.
void forget_runtime_errors();

// Returns the first error that the runtime logged since then, which is closest to the cause, or the operators without a
// kernel; with the name of its code, such as `Error::InvalidProgram`, by which the farm tells kinds of failure apart.
std::string runtime_error_text(const std::string& code);
