#include "run/error_file.hpp"

#include <fcntl.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "os/fd.hpp"

namespace ddl::run {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = 64 * 1024;

// Non-blocking, since a worker may have put anything under that name.
std::string read_start(const std::string& path) {
    const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text(kMaxBytes, '\0');
    std::size_t size = 0;
    while (file && size < text.size()) {
        const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count <= 0) {
            break;
        }
        size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
}

std::string text_of(const json& object, const char* name) {
    const auto field = object.find(name);
    return field != object.end() && field->is_string() ? field->get<std::string>() : "";
}

// "" when the value has none of the known forms.
std::string message_in(const json& root) {
    if (!root.is_object() || !root.contains("message")) {
        return "";
    }
    const json& message = root["message"];
    if (message.is_string()) {
        return message.get<std::string>();
    }
    if (!message.is_object()) {
        return "";
    }
    const auto extra = message.find("extraInfo");
    const std::string stack = extra != message.end() && extra->is_object() ? text_of(*extra, "py_callstack") : "";
    return stack.empty() ? text_of(message, "message") : stack;
}

// What any terminal and any JSON writer can take: control characters and bytes that are no UTF-8 are replaced.
std::string presentable(const std::string& text) {
    const std::string valid =
        json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
    std::string result;
    for (const char c : valid) {
        const auto byte = static_cast<unsigned char>(c);
        result += byte < ' ' && c != '\n' && c != '\t' ? '?' : c;
    }
    return std::string(trim(result));
}

}  // namespace

std::string read_error_file(const std::string& path) {
    const std::string text = path.empty() ? "" : read_start(path);
    if (trim(text).empty()) {
        return "";
    }
    const json root = json::parse(text, nullptr, false);
    const std::string message = root.is_discarded() ? "" : presentable(message_in(root));
    if (!message.empty()) {
        return message;
    }
    return presentable(text) + "\n(" + path + " is not in torchelastic's format, or longer than 64 KiB; shown as text)";
}

}  // namespace ddl::run
