// The kernels that XNNPACK selected for a loaded program, by name, without a build that logs them.
#pragma once

#include <string>

// Whether this platform supports it; elsewhere the flag for it is refused.
bool can_list_selected_kernels();

// Starts to remember what XNNPACK allocates for its operators, if the command line asks for selected kernels. Must run
// before the constructors of all libraries: XNNPACK takes an allocator only when it is initialized.
void track_operators(int argc, char** argv);

// Returns the JSON of the kernels that the operators which exist now point to. A pointer to a function of XNNPACK whose
// name is unknown is counted; its name is never guessed.
std::string selected_kernels_json();
