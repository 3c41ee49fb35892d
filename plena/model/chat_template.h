// Chat templates: the part of Jinja that published models use to turn messages into a prompt.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plena/base/error.h"

namespace plena {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = true;  // end with what the assistant's answer begins with
  std::string begin_text;             // bos_token
  std::string end_text;               // eos_token
};

/// Fills in a template. Known: text, comments, `{{ }}`, if, for (with loop), set, and white space
/// control; strings, numbers, lists, dicts, attributes, items, slices, comparisons, arithmetic, the
/// conditional expression; the filters, tests, methods and functions that docs/models.md lists.
/// Whatever else a template uses, and its own raise_exception(), is an error with the line.
Result<std::string> render_chat(std::string_view chat_template,
                                std::span<const ChatMessage> messages, const ChatOptions& options);

}  // namespace plena
