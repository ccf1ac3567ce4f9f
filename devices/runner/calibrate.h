// A fixed piece of work whose time shows whether the processor is as fast as it was when cool and idle.
#pragma once

#include <cstdint>

// Does the work on the calling thread, 100 to 200 ms on most cores, and returns its nanoseconds. It needs no model and
// no memory beyond the L1 cache, so that only clock, throttling and other programs change its time.
int64_t calibration_ns();
