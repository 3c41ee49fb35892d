// For tests of the command line: runs the built program as a user would. Header only; the program
// is the one CMake names in PLENA_PROGRAM.
#pragma once

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace plena {

struct ProgramRun {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

inline std::string drain(std::FILE* file) {
  std::string text;
  std::fseek(file, 0, SEEK_SET);
  char chunk[4096];
  for (std::size_t n = 0; (n = std::fread(chunk, 1, sizeof chunk, file)) > 0;)
    text.append(chunk, n);
  std::fclose(file);
  return text;
}

/// Runs `plena ARGUMENTS…` with `input` on its standard input; `out` names a file to use as stdout
/// instead of collecting it.
inline ProgramRun run_program(const std::vector<std::string>& arguments,
                              const std::string& input = {}, const char* out = nullptr) {
  std::FILE* in_file = std::tmpfile();
  std::FILE* out_file = out != nullptr ? std::fopen(out, "w") : std::tmpfile();
  std::FILE* err_file = std::tmpfile();
  std::fwrite(input.data(), 1, input.size(), in_file);
  std::fflush(in_file);
  std::fseek(in_file, 0, SEEK_SET);

  std::vector<char*> argv;
  std::string program = PLENA_PROGRAM;
  std::vector<std::string> owned = arguments;
  argv.push_back(program.data());
  for (auto& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::fileno(in_file), STDIN_FILENO);
    ::dup2(::fileno(out_file), STDOUT_FILENO);
    ::dup2(::fileno(err_file), STDERR_FILENO);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  int wait_status = 0;
  ::waitpid(child, &wait_status, 0);
  std::fclose(in_file);
  ProgramRun run;
  run.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  run.out = out != nullptr ? (std::fclose(out_file), std::string()) : drain(out_file);
  run.err = drain(err_file);
  return run;
}

}  // namespace plena
