// The runtime's thread pool, shared by XNNPACK and the portable kernels.
#pragma once

// Makes the pool have `requested` threads (-1: as many as there are fast cores) and returns how many it has.
// Throws RunError if it has another number.
int set_threads(int requested);
