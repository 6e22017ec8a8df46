// What is executed, and by which Python: the rules one by one, on a made-up file system.
#include "plan/program_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

Program program_of(const Requested& requested, const HostFacts& host) {
    const Result<LaunchPlan> plan = make_plan(requested, host);
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return plan ? plan->program : Program{};
}

TEST(ProgramChoice, APyFileGoesToPython) {
    const Program program = program_of(request({}, {"train.py", "--lr", "1", "--", "x"}), machine());
    EXPECT_THAT(program.argv, ElementsAre("/usr/bin/python3", "-u", "train.py", "--lr", "1", "--", "x"));
    EXPECT_EQ(program.python_source, "PATH");
}

TEST(ProgramChoice, APyFileGoesToPythonEvenIfItCouldBeExecuted) {
    const HostFacts host = machine({{"./run.py", executable_file("#!/u")}});
    EXPECT_THAT(program_of(request({}, {"./run.py"}), host).argv, ElementsAre("/usr/bin/python3", "-u", "./run.py"));
}

TEST(ProgramChoice, ProgramsAndScriptsThatMayBeExecutedAre) {
    const HostFacts host = machine({{"./digits", elf_file()}, {"./run.sh", executable_file("#!/b")}});
    EXPECT_THAT(program_of(request({}, {"./digits", "-x"}), host).argv, ElementsAre("./digits", "-x"));
    EXPECT_EQ(program_of(request({}, {"./digits"}), host).python_source, "");
    EXPECT_THAT(program_of(request({}, {"./run.sh"}), host).argv, ElementsAre("./run.sh"));
}

TEST(ProgramChoice, TheFileThatWasLookedAtIsTheOneThatRuns) {
    const HostFacts host = machine({{"digits", elf_file()}, {"/usr/bin/digits", elf_file()}});
    EXPECT_THAT(program_of(request({}, {"digits"}), host).argv, ElementsAre("./digits"));
}

TEST(ProgramChoice, EverythingElseGoesToPython) {
    const HostFacts host = machine({{"script", plain_file("#!/b")},
                                    {"data", executable_file("abcd")},
                                    {"empty", executable_file("")},
                                    {"package", {true, true, true, ""}}});
    for (const char* name : {"script", "data", "empty", "package"}) {
        EXPECT_THAT(program_of(request({}, {name}), host).argv, ElementsAre("/usr/bin/python3", "-u", name));
    }
}

TEST(ProgramChoice, ModulesNeedNoFile) {
    const Program program = program_of(request({{Flag::kModule, "1"}}, {"pkg.train", "-m"}), machine());
    EXPECT_THAT(program.argv, ElementsAre("/usr/bin/python3", "-u", "-m", "pkg.train", "-m"));
}

TEST(ProgramChoice, NoPythonLooksInPath) {
    const HostFacts host = machine({{"/usr/bin/echo", elf_file()}, {"./tool", executable_file("abcd")}});
    EXPECT_THAT(program_of(request({{Flag::kNoPython, "1"}}, {"echo", "hi"}), host).argv, ElementsAre("echo", "hi"));
    EXPECT_THAT(program_of(request({{Flag::kNoPython, "1"}}, {"./tool"}), host).argv, ElementsAre("./tool"));
}

TEST(ProgramChoice, RunPathGoesToPythonWhateverTheFileIs) {
    const HostFacts host = machine({{"./run", executable_file("#!/u")}});
    EXPECT_THAT(program_of(request({{Flag::kRunPath, "1"}}, {"./run"}), host).argv,
                ElementsAre("/usr/bin/python3", "-u", "./run"));
    EXPECT_THAT(program_of(request({{Flag::kRunPath, "1"}, {Flag::kNoPython, "1"}}, {"./run"}), host).argv,
                ElementsAre("/usr/bin/python3", "-u", "./run"));
}

TEST(ProgramChoice, ANameWithTheMacroIsNotLookedFor) {
    EXPECT_THAT(program_of(request({}, {"train${local_rank}.py"}), machine()).argv,
                ElementsAre("/usr/bin/python3", "-u", "train${local_rank}.py"));
    EXPECT_THAT(program_of(request({{Flag::kNoPython, "1"}}, {"./w${local_rank}"}), machine()).argv,
                ElementsAre("./w${local_rank}"));
}

TEST(ProgramChoice, SaysWhatIsWrong) {
    struct Bad {
        std::vector<Given> given;
        Words program;
        const char* error;
    };
    const HostFacts host = machine({{"./digits", plain_file("\x7F"
                                                            "ELF")},
                                    {"./tool", plain_file("abcd")},
                                    {"./dir", {true, true, true, ""}},
                                    {"/usr/bin/true", elf_file()}});
    const Bad table[] = {
        {{}, {}, "no program to run; try: ddlaunch --standalone --nproc-per-node 2 train.py"},
        {{}, {""}, "no program to run; try: ddlaunch --standalone --nproc-per-node 2 train.py"},
        {{},
         {"missing.py"},
         "\"missing.py\": no such file; for a Python module try -m, and put ddlaunch's own options before the script"},
        {{}, {"true"}, "\"true\": no such file; for the program in PATH try --no-python true"},
        {{}, {"./digits"}, "\"./digits\": is a program that may not be executed; try chmod +x"},
        {{{Flag::kNoPython, "1"}}, {"./none"}, "\"./none\": no such file"},
        {{{Flag::kNoPython, "1"}}, {"./dir"}, "\"./dir\": is a directory"},
        {{{Flag::kNoPython, "1"}},
         {"./tool"},
         "\"./tool\": may not be executed; try chmod +x, or Python without --no-python"},
        {{{Flag::kNoPython, "1"}},
         {"digits"},
         "\"digits\": no such program in PATH; for one in this folder try ./digits"},
        {{{Flag::kNoPython, "1"}, {Flag::kModule, "1"}},
         {"m"},
         "--module: contradicts --no-python; leave one of the two out"},
        {{{Flag::kRunPath, "1"}, {Flag::kModule, "1"}},
         {"m"},
         "--module: contradicts --run-path; leave one of the two out"},
    };
    for (const Bad& bad : table) {
        Requested requested = request({}, bad.program);
        for (const Given& one : bad.given) {
            requested.set(one.flag, {one.text, spelling(one.flag), true});
        }
        EXPECT_EQ(error_of(requested, host), bad.error);
    }
}

// Everything a Python can be found by, and then less and less of it.
TEST(PythonChoice, GoesThroughItsSourcesInOrder) {
    const Files files = {{"/opt/ddl/python3", elf_file()},
                         {"/opt/ddl/python", elf_file()},
                         {"/opt/ddl/../pyvenv.cfg", plain_file("home")},
                         {"/venv/bin/python", elf_file()},
                         {"/own/python", elf_file()}};
    HostFacts host = machine(files, {"PYTHON_EXEC=/own/python", "VIRTUAL_ENV=/venv"});
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/own/python");
    EXPECT_EQ(program_of(request({}), host).python_source, "PYTHON_EXEC");

    host = machine(files, {"PYTHON_EXEC=", "VIRTUAL_ENV=/venv"});
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/opt/ddl/python3");
    EXPECT_EQ(program_of(request({}), host).python_source, "next to /opt/ddl/ddlaunch");

    Files fewer = files;
    fewer.erase("/opt/ddl/python3");
    host = machine(fewer, {"VIRTUAL_ENV=/venv"});
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/opt/ddl/python");

    fewer.erase("/opt/ddl/python");
    host = machine(fewer, {"VIRTUAL_ENV=/venv"});
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/venv/bin/python");
    EXPECT_EQ(program_of(request({}), host).python_source, "VIRTUAL_ENV");

    host = machine(fewer);
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/usr/bin/python3");
    EXPECT_EQ(program_of(request({}), host).python_source, "PATH");

    host.environment = {"PATH=/old"};
    const auto probe = host.probe;
    host.probe = [probe](const std::string& path) {
        return path == "/old/python" ? elf_file() : probe(path);
    };
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/old/python");
}

// /usr/bin/ddlaunch with an activated environment: the Python beside it is not what the user means.
TEST(PythonChoice, AnActiveEnvironmentGoesBeforeTheSystemsPythonBesideUs) {
    HostFacts host = machine({{"/venv/bin/python", elf_file()}}, {"VIRTUAL_ENV=/venv"});
    host.invoked_as = "/usr/bin/ddlaunch";
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/venv/bin/python");
    EXPECT_EQ(program_of(request({}), host).python_source, "VIRTUAL_ENV");

    host = machine({}, {"VIRTUAL_ENV=/gone"});  // deleted, but still active
    host.invoked_as = "/usr/bin/ddlaunch";
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/usr/bin/python3");
    EXPECT_EQ(program_of(request({}), host).python_source, "next to /usr/bin/ddlaunch");

    host = machine({{"/venv/bin/python", elf_file()}}, {"VIRTUAL_ENV="});
    host.invoked_as = "/usr/bin/ddlaunch";
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/usr/bin/python3");
}

TEST(PythonChoice, ALauncherInAnEnvironmentMeansThatOneWhicheverIsActive) {
    HostFacts host = machine({{"env/bin/python3", elf_file()},
                              {"env/bin/../pyvenv.cfg", plain_file("home")},
                              {"/venv/bin/python", elf_file()}},
                             {"VIRTUAL_ENV=/venv"});
    host.invoked_as = "env/bin/ddlaunch";
    EXPECT_EQ(program_of(request({}), host).argv.front(), "env/bin/python3");
    EXPECT_EQ(program_of(request({}), host).python_source, "next to env/bin/ddlaunch");
}

TEST(PythonChoice, AnEnvironmentWithoutAPythonIsPassedOver) {
    HostFacts host = machine({{"/opt/ddl/../pyvenv.cfg", plain_file("home")}, {"/venv/bin/python", elf_file()}},
                             {"VIRTUAL_ENV=/venv"});
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/venv/bin/python");
}

TEST(PythonChoice, ALauncherFoundInPathHasItsFolderToo) {
    HostFacts host = machine({{"/usr/local/bin/torchrun", elf_file()}, {"/usr/local/bin/python", elf_file()}});
    host.invoked_as = "torchrun";
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/usr/local/bin/python");
    EXPECT_EQ(program_of(request({}), host).python_source, "next to torchrun");
}

TEST(PythonChoice, ALauncherFoundInPathMayLieInAnEnvironment) {
    HostFacts host = machine({{"/e/bin/torchrun", elf_file()},
                              {"/e/bin/python", elf_file()},
                              {"/e/bin/../pyvenv.cfg", plain_file("home")},
                              {"/usr/bin/torchrun", elf_file()},
                              {"/venv/bin/python", elf_file()}});
    host.invoked_as = "torchrun";
    host.environment = {"VIRTUAL_ENV=/venv", "PATH=/none:/e/bin:/usr/bin"};
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/e/bin/python");
    host.environment = {"VIRTUAL_ENV=/venv", "PATH=/usr/bin:/e/bin"};  // the first one is the one that was called
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/venv/bin/python");
}

TEST(PythonChoice, ALauncherInTheRootOrInNoFolderAtAll) {
    HostFacts host = machine();
    host.invoked_as = "";
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/usr/bin/python3");
    host.invoked_as = "not-in-path";
    EXPECT_EQ(program_of(request({}), host).python_source, "PATH");
    host = machine({{"ddlaunch", elf_file()}, {"./ddlaunch", elf_file()}, {"./python3", elf_file()}});
    host.invoked_as = "ddlaunch";
    host.environment = {"PATH=:/usr/bin"};  // an empty entry is the working directory
    EXPECT_EQ(program_of(request({}), host).argv.front(), "./python3");
}

TEST(PythonChoice, AFolderOrAFileWithoutRunBitIsNoPython) {
    const HostFacts host = machine({{"/opt/ddl/python3", {true, true, true, ""}}, {"/opt/ddl/python", plain_file()}});
    EXPECT_EQ(program_of(request({}), host).argv.front(), "/usr/bin/python3");
}

TEST(PythonChoice, NoneAtAllIsSaid) {
    HostFacts host = machine();
    host.environment = {"PATH=/nowhere"};
    EXPECT_EQ(error_of(request({}), host),
              "\"train.py\": no python3 or python in PATH to run it with; set PYTHON_EXEC, or try --no-python");
}

TEST(CommandDigest, LeavesTheInterpretersPathOut) {
    const Program here{{"/usr/bin/python3", "-u", "train.py", "a"}, "PATH"};
    const Program there{{"/venv/bin/python", "-u", "train.py", "a"}, "VIRTUAL_ENV"};
    EXPECT_EQ(command_digest(here), command_digest(there));
}

TEST(CommandDigest, TellsProgramsArgumentsAndTheirBoundsApart) {
    const auto digest_of = [](const Words& argv) {
        return command_digest(Program{argv, ""});
    };
    EXPECT_NE(digest_of({"a", "b"}), digest_of({"a", "c"}));
    EXPECT_NE(digest_of({"a", "b"}), digest_of({"c", "b"}));
    EXPECT_NE(digest_of({"a", "bc"}), digest_of({"ab", "c"}));
    EXPECT_NE(digest_of({"a", ""}), digest_of({"a"}));
    EXPECT_EQ(digest_of({"a", "b"}).size(), 16U);
}

TEST(CommandDigest, IsInThePlan) {
    const Result<LaunchPlan> plan = make_plan(request({}, {"train.py", "x"}), machine());
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->rendezvous.command_digest, command_digest(plan->program));
}

}  // namespace
}  // namespace ddl::plan::testing
