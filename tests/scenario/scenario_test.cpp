// scenario_test FILE…: runs transcripts; 0 when all went as expected, else 1 and what was different.

#include <fstream>
#include <iostream>
#include <sstream>

#include "scenario/transcript.hpp"

int main(int argc, char** argv) {
    int failed = argc < 2 ? 1 : 0;
    for (int i = 1; i < argc; ++i) {
        std::ifstream file(argv[i]);
        std::ostringstream text;
        text << file.rdbuf();
        if (!file || text.str().empty()) {
            std::cerr << argv[i] << ": cannot be read\n";
            failed = 1;
        } else if (const auto wrong = ddl::scenario::Transcript().run(text.str())) {
            std::cerr << argv[i] << ":" << *wrong << "\n";
            failed = 1;
        }
    }
    return failed;
}
