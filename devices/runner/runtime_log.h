// The runtime's own log: kept from stderr, so that a person reads one line and not twenty.
#pragma once

#include <string>

// Sends the runtime's log here; call before anything else of the runtime.
void catch_runtime_log();

// Returns the first error that the runtime has logged, which is nearest to the cause, or `otherwise`.
std::string first_runtime_error(const std::string& otherwise);
