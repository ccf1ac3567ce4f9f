// Reports what the program was doing when it crashes.
#pragma once

// What happens from now on, for the message of a crash: a verb and its object, such as "loaded the model". The text must
// stay valid.
void now_doing(const char* what);

// Writes one line to stderr when a signal ends the program, and then lets it end with that signal.
void report_crashes();

// Removes a file when a signal ends the program; null: none. The text must stay valid.
void remove_in_crash(const char* path);

// Removes that file and ends the program by the signal that ended a child, without a further line.
[[noreturn]] void end_by_signal(int number);
