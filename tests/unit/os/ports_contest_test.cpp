// Reservations of ports against others: other jobs, jobs that were killed, neighbours of a base, other families.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <set>

#include "os/ports.hpp"
#include "process_tools.hpp"

namespace ddl::os {
namespace {

using ::testing::HasSubstr;
using testing::Pipe;

Fd listener_v4(int port) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool good = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                      ::listen(socket.get(), 1) == 0;
    return good ? std::move(socket) : Fd();
}

Fd listener_v6(int port) {
    Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        return Fd();
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    address.sin6_addr = in6addr_loopback;
    const bool good = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                      ::listen(socket.get(), 1) == 0;
    return good ? std::move(socket) : Fd();
}

std::uint16_t free_base() {
    return PortReservation::take()->port();
}

bool can_take(int port) {
    const auto number = static_cast<std::uint16_t>(port);
    return PortReservation::take(number, number).has_value();
}

// Another job: takes `count` ports, tells them, and keeps them until it is killed.
class OtherJob {
public:
    explicit OtherJob(int count, std::uint16_t first = 0, std::uint16_t last = 0) : pid_(::fork()) {
        if (pid_ == 0) {
            std::vector<PortReservation> kept;
            std::string text;
            for (int i = 0; i < count; ++i) {
                auto taken = PortReservation::take(first, last);
                text += std::to_string(taken ? taken->port() : 0) + " ";
                if (taken) {
                    kept.push_back(std::move(*taken));
                }
            }
            text += "\n";
            if (::write(pipe_.write_end.get(), text.data(), text.size()) < 0) {
                ::_exit(1);
            }
            ::pause();
        }
    }
    ~OtherJob() {
        end();
    }
    void end() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }
    std::vector<int> ports() {
        std::vector<int> found;
        std::string text = pipe_.read_until("\n");
        for (std::size_t at = 0; at < text.size() && text[at] != '\n'; at = text.find(' ', at) + 1) {
            found.push_back(std::stoi(text.substr(at)));
        }
        return found;
    }

private:
    Pipe pipe_;
    pid_t pid_;
};

TEST(PortContest, JobsThatTakeAtTheSameTimeNeverShareAPort) {
    std::vector<std::unique_ptr<OtherJob>> jobs;
    for (int i = 0; i < 4; ++i) {
        jobs.push_back(std::make_unique<OtherJob>(12));
    }
    std::set<int> all;
    for (const auto& job : jobs) {
        const std::vector<int> ports = job->ports();
        ASSERT_EQ(ports.size(), 12U);
        for (const int port : ports) {
            ASSERT_GT(port, 0);
            EXPECT_TRUE(all.insert(port).second) << port << " was given out twice";
            EXPECT_FALSE(all.contains(port + 1) || all.contains(port + 2)) << "the neighbours belong to their base";
        }
    }
}

TEST(PortContest, AKilledJobHoldsNothing) {
    OtherJob job(1);
    const std::vector<int> ports = job.ports();
    ASSERT_EQ(ports.size(), 1U);
    EXPECT_FALSE(can_take(ports[0]));
    job.end();
    EXPECT_TRUE(can_take(ports[0])) << "its lock went with it, although the file stays";
}

TEST(PortContest, ARangeIsSharedPortByPort) {
    ::unsetenv("XDG_RUNTIME_DIR");
    const std::uint16_t base = free_base();
    OtherJob job(2, base, static_cast<std::uint16_t>(base + 2));
    EXPECT_THAT(job.ports(), ::testing::ElementsAre(base, base + 1));
    const auto third = PortReservation::take(base, static_cast<std::uint16_t>(base + 2));
    ASSERT_TRUE(third) << third.error().message;
    EXPECT_EQ(third->port(), base + 2);
    const auto fourth = PortReservation::take(base, static_cast<std::uint16_t>(base + 2));
    ASSERT_FALSE(fourth);
    EXPECT_THAT(fourth.error().message,
                HasSubstr("no free port between " + std::to_string(base) + " and " + std::to_string(base + 2)));
    EXPECT_THAT(fourth.error().message, HasSubstr(scratch_base() + "/ddlaunch-ports-" + std::to_string(::getuid())));
}

TEST(PortContest, AListenerOfEitherFamilyIsInTheWay) {
    const std::uint16_t base = free_base();
    {
        const Fd four = listener_v4(base);
        ASSERT_TRUE(four);
        EXPECT_FALSE(can_take(base));
    }
    EXPECT_TRUE(can_take(base));
    if (const Fd six = listener_v6(base)) {
        EXPECT_FALSE(can_take(base)) << "the store listens on both";
    }
    EXPECT_TRUE(can_take(base));
}

TEST(PortContest, TheGridLooksAtTheNeighboursToo) {
    const std::uint16_t base = free_base();
    const Fd neighbour = listener_v4(base + 2);
    ASSERT_TRUE(neighbour);
    for (int i = 0; i < 3; ++i) {
        const auto taken = PortReservation::take();
        ASSERT_TRUE(taken) << taken.error().message;
        EXPECT_NE(taken->port(), base) << "base + 2 is in use";
    }
    EXPECT_TRUE(can_take(base)) << "in a given range only the port itself counts";
}

TEST(PortContest, AReservationMovesWithItsOwner) {
    std::optional<PortReservation> kept;
    std::uint16_t port = 0;
    {
        auto taken = PortReservation::take();
        ASSERT_TRUE(taken);
        port = taken->port();
        kept.emplace(std::move(*taken));
    }
    EXPECT_FALSE(can_take(port)) << "what was moved from holds nothing, what was moved to does";
    EXPECT_EQ(kept->port(), port);
    kept.reset();
    EXPECT_TRUE(can_take(port));
}

TEST(PortContest, LocksAreForThisUserAlone) {
    ::unsetenv("XDG_RUNTIME_DIR");
    ASSERT_TRUE(PortReservation::take());
    struct stat info {};
    ASSERT_EQ(::stat((scratch_base() + "/ddlaunch-ports-" + std::to_string(::getuid())).c_str(), &info), 0);
    EXPECT_TRUE(S_ISDIR(info.st_mode));
    EXPECT_EQ(info.st_uid, ::getuid());
    EXPECT_EQ(info.st_mode & 077U, 0U);
}

TEST(PortContest, ALockIsNotInheritedByWorkers) {
    const auto taken = PortReservation::take();
    ASSERT_TRUE(taken);
    Pipe output;
    SpawnRequest request = testing::shell("ls -l /proc/$$/fd | grep -c ddlaunch-ports; true");
    request.standard_out = output.write_end.get();
    const auto child = spawn(request);
    ASSERT_TRUE(child);
    EXPECT_EQ(output.read_until(), "0\n") << "a worker that outlives us must not keep the port";
    testing::wait_for(*child);
}

}  // namespace
}  // namespace ddl::os
