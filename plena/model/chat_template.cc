#include "plena/model/chat_template.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plena/model/chat/expression.h"

namespace plena {

namespace {

using chat::ExpressionParser;
using chat::ExpressionPtr;
using chat::Scope;
using chat::TemplateError;
using chat::Value;

constexpr int kMostDepth = 50;  // of nested statements

// A template's text, the inside of `{{ }}`, or of `{% %}`.
struct Segment {
  enum class Kind { Text, Output, Statement };
  Kind kind;
  std::string source;
  std::size_t line;
};

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Cuts a template at its tags. White space as Hugging Face sets it: the newline behind a statement
// and the blanks in front of one that begins its line belong to it; `-` takes all white space.
std::vector<Segment> read_segments(std::string_view source) {
  std::vector<Segment> segments;
  std::size_t line = 1;
  std::string text;
  if (source.ends_with('\n')) source.remove_suffix(1);  // as Jinja does
  while (!source.empty()) {
    const std::size_t open = source.find('{');
    const bool is_tag = open != std::string_view::npos && open + 1 < source.size() &&
                        std::string_view("{%#").find(source[open + 1]) != std::string_view::npos;
    if (!is_tag) {
      const auto end = open == std::string_view::npos ? source.size() : open + 1;
      text += source.substr(0, end);
      line += static_cast<std::size_t>(
          std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      source.remove_prefix(end);
      continue;
    }
    const char kind = source[open + 1];
    const std::string_view closing = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    text += source.substr(0, open);
    const std::size_t end = source.find(closing, open + 2);
    if (end == std::string_view::npos) throw TemplateError(fmt::format("a tag has no {}", closing));
    std::string_view inside = source.substr(open + 2, end - open - 2);
    const bool strips_before = inside.starts_with('-');
    const bool strips_after = inside.ends_with('-');
    const bool keeps_before = inside.starts_with('+');
    if (strips_before || keeps_before) inside.remove_prefix(1);
    if (strips_after && !inside.empty()) inside.remove_suffix(1);
    if (strips_before) {
      text.erase(text.find_last_not_of(" \t\r\n") + 1);
    } else if (kind != '{' && !keeps_before) {
      std::size_t blanks = text.size();
      while (blanks > 0 && is_blank(text[blanks - 1])) --blanks;
      const bool at_line_start = blanks == 0 ? segments.empty() : text[blanks - 1] == '\n';
      if (at_line_start) text.erase(blanks);
    }
    if (!text.empty()) segments.push_back({Segment::Kind::Text, std::exchange(text, {}), line});
    const auto consumed = source.substr(0, end + 2);
    line += static_cast<std::size_t>(std::count(consumed.begin(), consumed.end(), '\n'));
    if (kind != '#') {
      segments.push_back({kind == '{' ? Segment::Kind::Output : Segment::Kind::Statement,
                          std::string(inside), line});
    }
    source.remove_prefix(end + 2);
    if (strips_after) {
      const auto rest = std::min(source.find_first_not_of(" \t\r\n"), source.size());
      source.remove_prefix(rest);
    } else if (kind != '{' && source.starts_with('\n')) {
      source.remove_prefix(1);
      ++line;
    }
  }
  if (!text.empty()) segments.push_back({Segment::Kind::Text, text, line});
  return segments;
}

class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;
  virtual void render(Scope& scope, std::string& out) const = 0;
};
using Body = std::vector<std::unique_ptr<const Node>>;

void render(const Body& body, Scope& scope, std::string& out) {
  for (const auto& node : body) node->render(scope, out);
}

void append(std::string& out, std::string_view text) {
  if (out.size() + text.size() > chat::kMostText) throw TemplateError("the prompt grows too long");
  out += text;
}

class TextNode : public Node {
 public:
  explicit TextNode(std::string text) : text_(std::move(text)) {}
  void render(Scope&, std::string& out) const override { append(out, text_); }

 private:
  std::string text_;
};

class OutputNode : public Node {
 public:
  explicit OutputNode(ExpressionPtr value) : value_(std::move(value)) {}
  void render(Scope& scope, std::string& out) const override {
    append(out, chat::to_text(value_->evaluate(scope)));
  }

 private:
  ExpressionPtr value_;
};

class SetNode : public Node {
 public:
  SetNode(std::string name, std::string member, ExpressionPtr value)
      : name_(std::move(name)), member_(std::move(member)), value_(std::move(value)) {}
  void render(Scope& scope, std::string&) const override {
    Value value = value_->evaluate(scope);
    if (member_.empty()) {
      scope.set(name_, std::move(value));
    } else {
      scope.set_member(name_, member_, std::move(value));
    }
  }

 private:
  std::string name_;
  std::string member_;  // of a namespace; empty: the variable itself
  ExpressionPtr value_;
};

class IfNode : public Node {
 public:
  struct Branch {
    ExpressionPtr condition;  // null: else
    Body body;
  };
  explicit IfNode(std::vector<Branch> branches) : branches_(std::move(branches)) {}
  void render(Scope& scope, std::string& out) const override {
    for (const Branch& branch : branches_) {
      if (branch.condition && !chat::is_true(branch.condition->evaluate(scope))) continue;
      return plena::render(branch.body, scope, out);
    }
  }

 private:
  std::vector<Branch> branches_;
};

class ForNode : public Node {
 public:
  ForNode(std::vector<std::string> names, ExpressionPtr list, ExpressionPtr condition, Body body)
      : names_(std::move(names)),
        list_(std::move(list)),
        condition_(std::move(condition)),
        body_(std::move(body)) {}

  void render(Scope& scope, std::string& out) const override {
    const std::vector<Value> elements = select(scope);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      scope.push();
      bind(scope, elements[i]);
      scope.set("loop",
                {{"index", i + 1},
                 {"index0", i},
                 {"first", i == 0},
                 {"last", i + 1 == elements.size()},
                 {"length", elements.size()},
                 {"previtem", i == 0 ? chat::undefined() : elements[i - 1]},
                 {"nextitem", i + 1 == elements.size() ? chat::undefined() : elements[i + 1]}});
      plena::render(body_, scope, out);
      scope.pop();
    }
  }

 private:
  // The elements that the loop's condition accepts.
  std::vector<Value> select(Scope& scope) const {
    const Value list = list_->evaluate(scope);
    if (!list.is_array() && !list.is_object() && !chat::is_undefined(list)) {
      throw TemplateError("a loop over no list");
    }
    std::vector<Value> elements;
    for (const auto& [key, value] : list.items()) {
      const Value element = list.is_object() ? Value(key) : value;
      scope.spend();
      if (!condition_ || accepts(scope, element)) elements.push_back(element);
    }
    return elements;
  }

  [[nodiscard]] bool accepts(Scope& scope, const Value& element) const {
    scope.push();
    bind(scope, element);
    const bool accepted = chat::is_true(condition_->evaluate(scope));
    scope.pop();
    return accepted;
  }

  void bind(Scope& scope, const Value& element) const {
    if (names_.size() == 1) return scope.set(names_[0], element);
    if (!element.is_array() || element.size() != names_.size()) {
      throw TemplateError("a loop over pairs finds no pair");
    }
    for (std::size_t i = 0; i < names_.size(); ++i) scope.set(names_[i], element[i]);
  }

  std::vector<std::string> names_;
  ExpressionPtr list_;
  ExpressionPtr condition_;  // null: every element
  Body body_;
};

class TemplateParser {
 public:
  explicit TemplateParser(std::vector<Segment> segments) : segments_(std::move(segments)) {}

  Body parse() {
    Body body = parse_body();
    if (at_ < segments_.size()) throw TemplateError("an end without its beginning");
    return body;
  }

  // Of the segment that was read last.
  [[nodiscard]] std::size_t line() const {
    return at_ == 0 ? 1 : segments_[std::min(at_, segments_.size()) - 1].line;
  }

 private:
  // The word a statement starts with, whose end leaves the body to whoever opened it.
  [[nodiscard]] static std::string first_word(const Segment& segment) {
    ExpressionParser words(segment.source);
    return words.take_name();
  }

  Body parse_body() {
    if (++depth_ > kMostDepth) throw TemplateError("statements are nested too deep");
    Body body;
    while (at_ < segments_.size()) {
      const Segment& segment = segments_[at_];
      if (segment.kind == Segment::Kind::Text) {
        ++at_;
        body.push_back(std::make_unique<TextNode>(segment.source));
      } else if (segment.kind == Segment::Kind::Output) {
        ++at_;
        ExpressionParser parser(segment.source);
        body.push_back(std::make_unique<OutputNode>(parser.parse()));
        parser.expect_end();
      } else {
        const std::string word = first_word(segment);
        if (word.starts_with("end") || word == "else" || word == "elif") break;
        ++at_;
        body.push_back(parse_statement(word, segment));
      }
    }
    --depth_;
    return body;
  }

  std::unique_ptr<const Node> parse_statement(const std::string& word, const Segment& segment) {
    ExpressionParser parser(segment.source);
    parser.expect(word);
    if (word == "if") return parse_if(parser);
    if (word == "for") return parse_for(parser);
    if (word == "set") return parse_set(parser);
    if (word == "generation") {  // marks what the assistant said; prints nothing
      parser.expect_end();
      Body body = parse_body();
      expect_statement("endgeneration");
      return std::make_unique<IfNode>(single_branch(std::move(body)));
    }
    throw TemplateError(fmt::format("unknown statement {}", word));
  }

  static std::vector<IfNode::Branch> single_branch(Body body) {
    std::vector<IfNode::Branch> branches;
    branches.push_back({nullptr, std::move(body)});
    return branches;
  }

  void expect_statement(std::string_view word) {
    if (at_ >= segments_.size() || first_word(segments_[at_]) != word) {
      throw TemplateError(fmt::format("{} is missing", word));
    }
    ++at_;
  }

  std::unique_ptr<const Node> parse_if(ExpressionParser& parser) {
    std::vector<IfNode::Branch> branches;
    ExpressionPtr condition = parser.parse();
    parser.expect_end();
    for (;;) {
      branches.push_back({std::move(condition), parse_body()});
      if (at_ >= segments_.size()) throw TemplateError("endif is missing");
      ExpressionParser next(segments_[at_++].source);
      if (next.take("elif")) {
        condition = next.parse();
      } else if (next.take("else")) {
        condition = nullptr;
      } else {
        next.expect("endif");
        return std::make_unique<IfNode>(std::move(branches));
      }
      next.expect_end();
    }
  }

  std::unique_ptr<const Node> parse_for(ExpressionParser& parser) {
    std::vector<std::string> names{parser.take_name()};
    while (parser.take(",")) names.push_back(parser.take_name());
    parser.expect("in");
    ExpressionPtr list = parser.parse_or();
    ExpressionPtr condition = parser.take("if") ? parser.parse_or() : nullptr;
    parser.expect_end();
    Body body = parse_body();
    expect_statement("endfor");
    return std::make_unique<ForNode>(std::move(names), std::move(list), std::move(condition),
                                     std::move(body));
  }

  static std::unique_ptr<const Node> parse_set(ExpressionParser& parser) {
    std::string name = parser.take_name();
    std::string member = parser.take(".") ? parser.take_name() : "";
    parser.expect("=");
    ExpressionPtr value = parser.parse();
    parser.expect_end();
    return std::make_unique<SetNode>(std::move(name), std::move(member), std::move(value));
  }

  std::vector<Segment> segments_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Scope make_scope(std::span<const ChatMessage> messages, const ChatOptions& options) {
  Value list = Value::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  Scope scope;
  scope.set("messages", std::move(list));
  scope.set("add_generation_prompt", options.add_generation_prompt);
  scope.set("bos_token", options.begin_text);
  scope.set("eos_token", options.end_text);
  return scope;
}

}  // namespace

Result<std::string> render_chat(std::string_view chat_template,
                                std::span<const ChatMessage> messages, const ChatOptions& options) {
  std::optional<TemplateParser> parser;
  Body body;
  try {
    parser.emplace(read_segments(chat_template));
    body = parser->parse();
  } catch (const TemplateError& e) {
    return fail(ErrorCode::Unsupported, "chat template, line {}: {}", parser ? parser->line() : 1,
                e.what());
  }
  try {
    Scope scope = make_scope(messages, options);
    std::string prompt;
    render(body, scope, prompt);
    return prompt;
  } catch (const TemplateError& e) {
    return fail(ErrorCode::Unsupported, "chat template: {}", e.what());
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::Unsupported, "chat template: {}", e.what());
  }
}

}  // namespace plena
