#pragma once
#include <exception>
#include <string>
#include <string_view>

namespace gala {

/// A text as a message may quote it: of a long one the middle is left out, and how much that is is
/// said. Characters of several bytes are not cut.
std::string in_brief(std::string_view text, std::size_t most = 400);

/// A whole message, fit to be read: words and lines without end are cut short in their middle.
std::string readable(const std::string& message);

/// A text as JSON can hold it: bytes that are not UTF-8, as names of files may have, are replaced.
std::string as_utf8(const std::string& text);

/// What went wrong, in words of this library and on one line, whoever threw: an Error's own message,
/// and for the exceptions of the standard library, of JSON and of LibTorch what they mean.
std::string in_words(const std::exception& error);

/// True for what CUDA, cuDNN or cuBLAS say of a GPU that does not go on. One whose memory is full does.
bool is_of_the_gpu(const std::exception& error);

/// True where a device has not enough memory, whoever says so.
bool is_of_a_full_device(const std::exception& error);

/// True when a file or a word of the user is the cause: ConfigError, FormatError, a path that the
/// system refuses, JSON that is none.
bool is_users_mistake(const std::exception& error);

}  // namespace gala
