#include "plena/observe/testing/browser.h"

#include <array>
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

#include "plena/base/scratch_folder.h"

namespace plena {

namespace {

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  std::array<char, 4096> chunk{};
  for (std::size_t n = 0; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    output.append(chunk.data(), n);
  ::pclose(pipe);
  return output;
}

constexpr const char* kBefore =
    "<script>const errors = [];"
    "addEventListener('error', (event) => errors.push(event.message));</script>";
constexpr const char* kMarker = "SEEN:";

// Text between the tags of an element comes back escaped.
std::string unescaped(std::string text) {
  for (const auto& [escape, character] :
       {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")}) {
    for (std::size_t at = 0; (at = text.find(escape, at)) != std::string::npos; ++at)
      text.replace(at, std::char_traits<char>::length(escape), character);
  }
  return text;
}

}  // namespace

std::string chromium() {
  if (const char* named = std::getenv("CHROMIUM"); named != nullptr) return named;
  std::string found = output_of("command -v chromium 2>/dev/null");
  while (found.ends_with('\n')) found.pop_back();
  return found;
}

std::string look_at_page(const std::string& page, const std::string& script) {
  const ScratchFolder folder;
  const std::string head = "<head>", end = "</body>";
  std::string watched = page;
  watched.replace(
      watched.rfind(end), end.size(),
      "<script>(() => { const found = {errors}; const seen = (name, value) => { found[name] = "
      "value; };\n" +
          script + "\nconst said = document.createElement('pre'); said.textContent = '" + kMarker +
          "' + JSON.stringify(found); document.body.append(said);" + "})();</script></body>");
  watched.replace(watched.find(head), head.size(), head + kBefore);
  const std::string file = folder.path() / "page.html";
  std::ofstream(file, std::ios::binary) << watched;

  // A browser of its own, without the sandbox that root may not have.
  const std::string dom =
      output_of("timeout 120 '" + chromium() + "' --headless --no-sandbox --disable-gpu " +
                "--disable-dev-shm-usage --user-data-dir='" + folder.path().string() +
                "/profile' --window-size=1280,1000 --virtual-time-budget=4000 --dump-dom 'file://" +
                file + "' 2>/dev/null");
  const std::string opening = std::string("<pre>") + kMarker;
  const std::size_t from = dom.rfind(opening);
  if (from == std::string::npos) return {};
  const std::size_t start = from + opening.size();
  return unescaped(dom.substr(start, dom.find("</pre>", start) - start));
}

}  // namespace plena
