// Chat templates against Jinja2: testdata/chat_templates.json, which
// testdata/make_chat_templates.py makes.
#include "plena/model/chat_template.h"

#include <random>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "plena/base/files.h"

namespace plena {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<ChatMessage> messages_of(const json& entry) {
  std::vector<ChatMessage> messages;
  for (const json& message : entry.at("messages")) {
    messages.push_back({message.at("role"), message.at("content")});
  }
  return messages;
}

Result<std::string> render(const json& entry, std::string_view chat_template) {
  return render_chat(chat_template, messages_of(entry),
                     {.add_generation_prompt = entry.at("add_generation_prompt"),
                      .begin_text = "<s>",
                      .end_text = "</s>"});
}

json read_entries() {
  return json::parse(
      read_text(std::string(PLENA_SOURCE_DIR) + "/plena/model/testdata/chat_templates.json")
          .value());
}

std::string error_of(std::string_view chat_template) {
  const std::vector<ChatMessage> messages{{"user", "Hi"}};
  const auto prompt = render_chat(chat_template, messages, {});
  return prompt ? "accepted: " + *prompt : prompt.error().message;
}

TEST(ChatTemplate, RendersAsJinjaDoes) {
  for (const json& entry : read_entries()) {
    const auto prompt = render(entry, entry.at("template").get<std::string>());
    if (entry.contains("error")) {
      ASSERT_FALSE(prompt);
      EXPECT_THAT(prompt.error().message, HasSubstr(entry.at("error").get<std::string>()));
    } else {
      ASSERT_TRUE(prompt) << entry.at("name") << ": " << prompt.error().message;
      EXPECT_EQ(*prompt, entry.at("prompt").get<std::string>()) << entry.at("name");
    }
  }
}

TEST(ChatTemplate, SaysWhatItDoesNotKnowAndWhere) {
  EXPECT_THAT(error_of("a\n\n{% macro x() %}{% endmacro %}"),
              HasSubstr("line 3: unknown statement"));
  EXPECT_THAT(error_of("{{ 'a' | reverse }}"), HasSubstr("unknown filter reverse"));
  EXPECT_THAT(error_of("{{ strftime_now('%d') }}"), HasSubstr("unknown function strftime_now"));
  EXPECT_THAT(error_of("{{ messages[5].content }}"), HasSubstr("not defined"));
  EXPECT_THAT(error_of("{% if true %}x"), HasSubstr("endif is missing"));
  EXPECT_THAT(error_of("{% endif %}"), HasSubstr("an end without its beginning"));
  EXPECT_THAT(error_of("{{ 'a"), HasSubstr("has no }}"));
  EXPECT_THAT(error_of("{{ 'a }}"), HasSubstr("a string has no end"));
}

TEST(ChatTemplate, EndsWhateverATemplateTries) {
  EXPECT_THAT(error_of(std::string(200, '[').insert(0, "{{") + "}}"), HasSubstr("nested too deep"));
  EXPECT_THAT(
      error_of("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"),
      HasSubstr("too many steps"));
  EXPECT_THAT(error_of("{% set n = namespace(t='0123456789') %}{% for i in range(60) %}"
                       "{% set n.t = n.t + n.t %}{% endfor %}"),
              HasSubstr("grows too long"));
  EXPECT_THAT(error_of("{{ range(10 * 10000000000) }}"), HasSubstr("too long"));
  EXPECT_THAT(error_of("{{ 1 % 0 }}"), HasSubstr("division by 0"));
}

TEST(ChatTemplate, SurvivesMutations) {
  const json entries = read_entries();
  std::mt19937 random(9);
  for (int round = 0; round < 500; ++round) {
    const json& entry = entries.at(random() % entries.size());
    auto text = entry.at("template").get<std::string>();
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = "{}%-'\"|.[]()x0 "[random() % 15];
      } else {
        text.erase(at, random() % 8);
      }
      if (text.empty()) break;
    }
    (void)render(entry, text);
  }
}

}  // namespace
}  // namespace plena
