// Whether the processor has SME2, and the answer that XNNPACK receives.
//
// XNNPACK queries the processor once, while the libraries are loaded, before main. The query is answered here:
// with --sme2=off on the command line the answer hides SME and SME2, otherwise it is unchanged.
#pragma once

// True if the processor and the operating system support SME2.
bool sme2_hardware();

// True if the processor was queried; sme2_told() is then the answer.
bool sme2_queried();

// True if the last answer reported SME2.
bool sme2_told();
