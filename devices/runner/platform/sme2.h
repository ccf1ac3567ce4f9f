// The processor's matrix extension, and the answer that XNNPACK receives.
//
// XNNPACK queries the processor once, while the libraries are loaded, before main. The query is answered here: with
// --sme2=off on the command line the answer hides SME and SME2, with --sme2=sme1 only SME2, otherwise it is unchanged.
#pragma once

#include <optional>

// What a processor has; each level contains the one before.
enum class Sme { none, sme1, sme2 };

// What the processor and the operating system support.
Sme sme_hardware();

// What the last answer to XNNPACK was; empty if it did not ask. Other libraries may ask the same function.
std::optional<Sme> sme_reported();
