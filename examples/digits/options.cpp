#include "options.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <system_error>

namespace digits {
namespace {

std::string beside_program(const std::string& name) {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    return (program.parent_path() / name).string();
}

int whole_number(const std::string& flag, const std::string& text, int least) {
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text.c_str(), &end, 10);
    if (errno != 0 || end == text.c_str() || *end != '\0' || value < least || value > 1'000'000'000) {
        throw std::invalid_argument(flag + ": \"" + text + "\" is not a whole number from " + std::to_string(least));
    }
    return static_cast<int>(value);
}

double fraction(const std::string& flag, const std::string& text, double below) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0' || !(value >= 0) || !(value < below)) {
        throw std::invalid_argument(flag + ": \"" + text + "\" is not a number from 0 to below " +
                                    std::to_string(below));
    }
    return value;
}

using Setter = std::function<void(const std::string& flag, const std::string& value)>;

std::map<std::string, Setter> setters(Options& o) {
    return {
        {"--data",
         [&o](const auto&, const auto& v) {
             o.data = v;
         }},
        {"--checkpoint",
         [&o](const auto&, const auto& v) {
             o.checkpoint = v;
         }},
        {"--loss-log",
         [&o](const auto&, const auto& v) {
             o.loss_log = v;
         }},
        {"--epochs",
         [&o](const auto& f, const auto& v) {
             o.epochs = whole_number(f, v, 1);
         }},
        {"--batch",
         [&o](const auto& f, const auto& v) {
             o.batch = whole_number(f, v, 1);
         }},
        {"--threads",
         [&o](const auto& f, const auto& v) {
             o.threads = whole_number(f, v, 1);
         }},
        {"--step-delay-ms",
         [&o](const auto& f, const auto& v) {
             o.step_delay_ms = whole_number(f, v, 0);
         }},
        {"--timeout-ms",
         [&o](const auto& f, const auto& v) {
             o.timeout_ms = whole_number(f, v, 1);
         }},
        {"--rate",
         [&o](const auto& f, const auto& v) {
             o.rate = fraction(f, v, 100);
         }},
        {"--momentum",
         [&o](const auto& f, const auto& v) {
             o.momentum = fraction(f, v, 1);
         }},
    };
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options options;
    options.data = beside_program("digits.csv");
    const auto known = setters(options);
    for (int i = 1; i < argc; ++i) {
        std::string flag = argv[i];
        if (flag == "-h" || flag == "--help") {
            options.help = true;
            return options;
        }
        const auto equals = flag.find('=');
        const bool joined = equals != std::string::npos;
        std::string value = joined ? flag.substr(equals + 1) : "";
        flag = flag.substr(0, equals);
        const auto found = known.find(flag);
        if (found == known.end()) {
            throw std::invalid_argument(flag + ": unknown flag; see --help");
        }
        if (!joined) {
            if (++i == argc) {
                throw std::invalid_argument(flag + ": a value is missing");
            }
            value = argv[i];
        }
        found->second(flag, value);
    }
    return options;
}

std::string usage() {
    return "digits: trains a small network on 8x8 images of handwritten digits, data-parallel over all ranks\n"
           "  --data FILE          images (default: digits.csv beside the program)\n"
           "  --checkpoint FILE    written by rank 0 after each epoch; training goes on from it\n"
           "  --loss-log FILE      one JSON line for each epoch, written by rank 0\n"
           "  --epochs N           default 30\n"
           "  --batch N            images of one step over all ranks, default 64\n"
           "  --rate X             learning rate, default 0.2\n"
           "  --momentum X         default 0.9\n"
           "  --threads N          threads of each rank, default 1\n"
           "  --step-delay-ms N    sleep after each step, to have time to break something\n"
           "  --timeout-ms N       limit of one exchange with the other ranks, default 60000\n";
}

}  // namespace digits
