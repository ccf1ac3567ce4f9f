// The processor's SME2, and what XNNPACK is told of it.
//
// XNNPACK asks once, while the libraries are loaded and thus before main. The question is answered here:
// with --sme2=off on the command line the answer hides SME and SME2, else it is the truth.
#pragma once

// True if the processor and its system offer SME2.
bool sme2_hardware();

// True if somebody asked, so that sme2_told() is what they were told.
bool sme2_asked();

// True if the last answer said SME2.
bool sme2_told();
