// The runtime's thread pool, shared by XNNPACK and the portable kernels.
#pragma once

// Sets the pool to `requested` threads (-1: one per fast core) and returns the number of its threads.
// Throws RunError if the number differs from the requested one.
int set_threads(int requested);
