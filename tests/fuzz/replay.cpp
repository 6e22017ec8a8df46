// Runs a fuzz target without libFuzzer: replay FOLDER COUNT [SEED] feeds every file of the folder, then COUNT mutations
// of them. The input under test is kept in replay-<target>.input when the target aborts, so that it can be run again.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz_target.hpp"

namespace {

std::string current;
std::string kept_as;

void keep_input(int) {
    std::ofstream(kept_as, std::ios::binary) << current;
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
}

void feed(const std::string& input) {
    current = input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

class Mutations {
public:
    Mutations(std::vector<std::string> corpus, unsigned seed) : corpus_(std::move(corpus)), random_(seed) {
    }

    std::string next() {
        std::string input = pick();
        for (std::size_t i = below(4) + 1; i > 0; --i) {
            mutate(input);
        }
        return input;
    }

private:
    std::size_t below(std::size_t limit) {
        return limit == 0 ? 0 : random_() % limit;
    }
    const std::string& pick() {
        return corpus_[below(corpus_.size())];
    }

    void mutate(std::string& input) {
        static const std::string kEdges("\x00\x01\x07\x08\x7F\x80\xFE\xFF", 8);
        const std::size_t at = below(input.size());
        switch (below(7)) {
            case 0:
                if (!input.empty()) {
                    input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
                }
                break;
            case 1:
                if (!input.empty()) {
                    input[at] = kEdges[below(kEdges.size())];
                }
                break;
            case 2:
                input.erase(at, below(12));
                break;
            case 3:
                input.insert(at, input.substr(below(input.size()), below(24)));
                break;
            case 4:
                input.resize(below(input.size() + 1));
                break;
            case 5:
                input.insert(at, 1, static_cast<char>(random_()));
                break;
            default:
                input += pick();
        }
        input.resize(std::min(input.size(), std::size_t{16384}));
    }

    std::vector<std::string> corpus_;
    std::mt19937 random_;
};

std::vector<std::string> read_corpus(const std::string& folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> corpus;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::cerr << "usage: replay FOLDER COUNT [SEED]\n";
        return 2;
    }
    kept_as = "replay-" + std::filesystem::path(arguments[0]).filename().string() + ".input";
    std::signal(SIGABRT, keep_input);
    const std::vector<std::string> corpus = read_corpus(arguments[1]);
    if (corpus.empty()) {
        std::cerr << arguments[1] << ": no corpus\n";
        return 2;
    }
    for (const std::string& input : corpus) {
        feed(input);
    }
    Mutations mutations(corpus, count > 3 ? static_cast<unsigned>(std::atoi(arguments[3])) : 1U);
    const int rounds = std::atoi(arguments[2]);
    for (int i = 0; i < rounds; ++i) {
        feed(mutations.next());
    }
    std::cout << corpus.size() << " inputs and " << rounds << " mutations\n";
    return 0;
}
