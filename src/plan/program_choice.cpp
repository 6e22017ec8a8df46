#include "plan/program_choice.hpp"

#include "base/text.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

struct Python {
    std::string path;
    std::string source;
};

bool is_program(const HostFacts& host, const std::string& path) {
    const FileFacts facts = host.probe(path);
    return facts.exists && !facts.is_directory && facts.executable;
}

// As execvp would find it: the first folder of PATH that has it; "" when none does.
std::string folder_in_path(const HostFacts& host, const std::string& name) {
    for (const std::string_view entry : split(lookup(host.environment, "PATH").value, ':')) {
        const std::string folder = entry.empty() ? "." : std::string(entry);
        if (is_program(host, folder + "/" + name)) {
            return folder;
        }
    }
    return {};
}

// The folder that the launcher was called from, not that of the file behind a link: a link in a virtual environment
// means that environment's Python.
std::string own_folder(const HostFacts& host) {
    const std::size_t slash = host.invoked_as.rfind('/');
    if (slash == std::string::npos) {
        return host.invoked_as.empty() ? "" : folder_in_path(host, host.invoked_as);
    }
    return slash == 0 ? "/" : host.invoked_as.substr(0, slash);
}

std::optional<Python> python_in(const HostFacts& host, const std::string& folder) {
    for (const char* name : {"/python3", "/python"}) {
        if (is_program(host, folder + name)) {
            return Python{folder + name, "next to " + host.invoked_as};
        }
    }
    return std::nullopt;
}

std::optional<Python> python_of_active_environment(const HostFacts& host) {
    const Lookup venv = lookup(host.environment, "VIRTUAL_ENV");
    const std::string path = std::string(venv.value) + "/bin/python";
    if (venv.value.empty() || !is_program(host, path)) {
        return std::nullopt;
    }
    return Python{path, "VIRTUAL_ENV"};
}

std::optional<Python> python_in_path(const HostFacts& host) {
    for (const char* name : {"python3", "python"}) {
        if (const std::string folder = folder_in_path(host, name); !folder.empty()) {
            return Python{folder + "/" + name, "PATH"};
        }
    }
    return std::nullopt;
}

// A launcher inside a virtual environment means that one, whichever is active; one of the whole system (/usr/bin) has
// a Python beside it too, and there the active environment is what the user means.
std::optional<Python> find_python(const HostFacts& host) {
    if (const Lookup given = lookup(host.environment, "PYTHON_EXEC"); !given.value.empty()) {
        return Python{std::string(given.value), "PYTHON_EXEC"};
    }
    const std::string folder = own_folder(host);
    const std::optional<Python> beside = folder.empty() ? std::nullopt : python_in(host, folder);
    if (beside && host.probe(folder + "/../pyvenv.cfg").exists) {
        return beside;
    }
    if (std::optional<Python> active = python_of_active_environment(host)) {
        return active;
    }
    return beside ? beside : python_in_path(host);
}

Program with_python(Asked& asked, const HostFacts& host, bool module) {
    const std::optional<Python> python = find_python(host);
    if (!python) {
        asked.refuse(quoted(asked.program().front()) +
                     ": no python3 or python in PATH to run it with; set PYTHON_EXEC, or try --no-python");
        return {};
    }
    Program program{{python->path, "-u"}, python->source};
    if (module) {
        program.argv.emplace_back("-m");
    }
    program.argv.insert(program.argv.end(), asked.program().begin(), asked.program().end());
    return program;
}

bool has_macro(const std::string& name) {
    return name.find("${local_rank}") != std::string::npos;
}

void check_executable(Asked& asked, const HostFacts& host, const std::string& name) {
    if (has_macro(name)) {
        return;  // known per worker only; a start that fails says why
    }
    if (name.find('/') == std::string::npos) {
        if (folder_in_path(host, name).empty()) {
            asked.refuse(quoted(name) + ": no such program in PATH; for one in this folder try ./" + name);
        }
        return;
    }
    const FileFacts facts = host.probe(name);
    if (!facts.exists || facts.is_directory) {
        asked.refuse(quoted(name) + (facts.exists ? ": is a directory" : ": no such file"));
    } else if (!facts.executable) {
        asked.refuse(quoted(name) + ": may not be executed; try chmod +x, or Python without --no-python");
    }
}

void refuse_missing(Asked& asked, const HostFacts& host, const std::string& name) {
    const bool in_path = name.find('/') == std::string::npos && !folder_in_path(host, name).empty();
    asked.refuse(quoted(name) + ": no such file" +
                 (in_path ? "; for the program in PATH try --no-python " + name
                          : "; for a Python module try -m, and put ddlaunch's own options before the script"));
}

Program by_its_looks(Asked& asked, const HostFacts& host) {
    const std::string& name = asked.program().front();
    if (has_macro(name)) {
        return with_python(asked, host, false);
    }
    const FileFacts facts = host.probe(name);
    if (!facts.exists) {
        refuse_missing(asked, host, name);
        return {};
    }
    const bool elf = facts.first_bytes.starts_with(
        "\x7F"
        "ELF");
    if (name.ends_with(".py") || facts.is_directory || !(elf || facts.first_bytes.starts_with("#!"))) {
        return with_python(asked, host, false);
    }
    if (!facts.executable) {
        if (elf) {
            asked.refuse(quoted(name) + ": is a program that may not be executed; try chmod +x");
        }
        return with_python(asked, host, false);
    }
    Program program{asked.program(), ""};
    if (name.find('/') == std::string::npos) {
        program.argv.front().insert(0, "./");  // the file that was looked at, not one of that name in PATH
    }
    return program;
}

}  // namespace

Program choose_program(Asked& asked, const HostFacts& host) {
    if (asked.program().empty() || asked.program().front().empty()) {
        asked.refuse("no program to run; try: ddlaunch --standalone --nproc-per-node 2 train.py");
        return {};
    }
    if (asked.on(Flag::kModule) && (asked.on(Flag::kNoPython) || asked.on(Flag::kRunPath))) {
        const Flag other = asked.on(Flag::kNoPython) ? Flag::kNoPython : Flag::kRunPath;
        asked.refuse(Flag::kModule, "contradicts " + asked.origin(other) + "; leave one of the two out");
        return {};
    }
    if (asked.on(Flag::kRunPath)) {
        if (!has_macro(asked.program().front()) && !host.probe(asked.program().front()).exists) {
            refuse_missing(asked, host, asked.program().front());
        }
        return with_python(asked, host, false);
    }
    if (asked.on(Flag::kModule)) {
        return with_python(asked, host, true);
    }
    if (asked.on(Flag::kNoPython)) {
        check_executable(asked, host, asked.program().front());
        return Program{asked.program(), ""};
    }
    return by_its_looks(asked, host);
}

std::string command_digest(const Program& program) {
    std::string bytes;
    for (std::size_t i = program.python_source.empty() ? 0 : 1; i < program.argv.size(); ++i) {
        bytes += program.argv[i];
        bytes += '\0';
    }
    return digest(bytes);
}

}  // namespace ddl::plan
