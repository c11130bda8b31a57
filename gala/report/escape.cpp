#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "gala/report/printers.h"

namespace gala {
namespace {

/// Length in bytes of the valid UTF-8 character at `at`, 0 when there is none; `code` is its number.
std::size_t character(std::string_view text, std::size_t at, char32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || at + length > text.size()) return 0;
  code = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3fU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  return length;
}

bool is_control(char32_t code) {
  // Marks that turn the direction of text could make a name look like another.
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// Calls `write` with every character of the cleaned text and its code.
template <class Write>
std::string each_character(const std::string& text, Write write) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    char32_t code = 0;
    const std::size_t length = character(text, at, code);
    if (length == 0 || (is_control(code) && code != '\n' && code != '\t' && code != '\r')) {
      result += write(std::string_view("\xef\xbf\xbd"), char32_t{0xfffd});
    } else if (code < 0x20) {
      result += write(std::string_view(" "), U' ');
    } else {
      result += write(std::string_view(text).substr(at, length), code);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

}  // namespace

std::string clean_text(const std::string& text) {
  return each_character(text, [](std::string_view bytes, char32_t) { return std::string(bytes); });
}

std::string escape_markdown(const std::string& text) {
  return each_character(text, [](std::string_view bytes, char32_t code) -> std::string {
    switch (code) {
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '|':
      case '~':
      case '#':
        return fmt::format("\\{}", bytes);
      default:
        return std::string(bytes);
    }
  });
}

std::string escape_html(const std::string& text) {
  return each_character(text, [](std::string_view bytes, char32_t code) -> std::string {
    switch (code) {
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      default:
        return std::string(bytes);
    }
  });
}

std::string escape_latex(const std::string& text) {
  return each_character(text, [](std::string_view bytes, char32_t code) -> std::string {
    switch (code) {
      case '\\':
        return "\\textbackslash{}";
      case '~':
        return "\\textasciitilde{}";
      case '^':
        return "\\textasciicircum{}";
      case '<':
        return "\\textless{}";
      case '>':
        return "\\textgreater{}";
      case '|':
        return "\\textbar{}";
      case '"':
        return "{\\char34}";
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        return fmt::format("\\{}", bytes);
      case U'–':
        return "--";
      case U'±':
        return "$\\pm$";
      case U'−':
        return "$-$";
      case U'∞':
        return "$\\infty$";
      default:
        break;
    }
    // Letters that every pdflatex knows; others have no glyph in its fonts.
    const bool known =
        code < 0x80 || (code >= 0xc0 && code <= 0xff && code != 0xd7 && code != 0xf7);
    return known ? std::string(bytes) : "?";
  });
}

}  // namespace gala
