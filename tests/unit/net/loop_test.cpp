// Loop: readiness, the alarm, posted calls, and what may be destroyed when.
#include "net/loop.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.hpp"

namespace ddl::net {
namespace {

using namespace test;

struct Pipe {
    Pipe() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        read.reset(ends[0]);
        write.reset(ends[1]);
    }
    void put(char c) const {
        EXPECT_EQ(::write(write.get(), &c, 1), 1);
    }
    char take() const {
        char c = 0;
        EXPECT_EQ(::read(read.get(), &c, 1), 1);
        return c;
    }
    os::Fd read;
    os::Fd write;
};

TEST(Loop, CallsAWatchAgainForWhatItLeftUnread) {
    Loop loop;
    const Pipe pipe;
    pipe.put('a');
    pipe.put('b');
    std::string seen;
    const auto watch = loop.watch_readable(pipe.read.get(), [&] { seen += pipe.take(); });
    EXPECT_TRUE(run_until(loop, [&] { return seen == "ab"; }));
    pipe.put('c');
    EXPECT_TRUE(run_until(loop, [&] { return seen == "abc"; }));
}

TEST(Loop, ReportsHangUp) {
    Loop loop;
    Pipe pipe;
    int calls = 0;
    std::unique_ptr<Watch> watch = loop.watch_readable(pipe.read.get(), [&] {
        ++calls;
        watch.reset();
    });
    pipe.write.reset();
    EXPECT_TRUE(run_until(loop, [&] { return calls > 0; }));
    EXPECT_EQ(calls, 1);
}

TEST(Loop, AWatchMayEndItselfInItsCallbackAndLeavesTheDescriptorOpen) {
    Loop loop;
    const Pipe pipe;
    pipe.put('a');
    pipe.put('b');
    int calls = 0;
    std::unique_ptr<Watch> watch;
    watch = loop.watch_readable(pipe.read.get(), [&, proof = std::string(100, 'x')] {
        watch.reset();
        calls += proof.size() == 100 ? 1 : 1000;  // what the callback holds is still there
    });
    EXPECT_TRUE(run_until(loop, [&] { return calls > 0; }));
    run_for(loop, 5ms);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(pipe.take(), 'a');
}

TEST(Loop, ADestroyedWatchIsNotCalledThoughItsDescriptorIsReady) {
    Loop loop;
    const Pipe first;
    const Pipe second;
    first.put('a');
    second.put('b');
    int calls = 0;
    std::unique_ptr<Watch> one;
    std::unique_ptr<Watch> two;
    one = loop.watch_readable(first.read.get(), [&] {
        ++calls;
        one.reset();
        two.reset();
    });
    two = loop.watch_readable(second.read.get(), [&] {
        ++calls;
        one.reset();
        two.reset();
    });
    EXPECT_TRUE(run_until(loop, [&] { return calls > 0; }));
    run_for(loop, 5ms);
    EXPECT_EQ(calls, 1);
}

TEST(Loop, ADescriptorCanBeWatchedAnew) {
    Loop loop;
    const Pipe pipe;
    int first = 0;
    int second = 0;
    auto watch = loop.watch_readable(pipe.read.get(), [&] { ++first; });
    watch.reset();
    watch = loop.watch_readable(pipe.read.get(), [&] {
        pipe.take();
        ++second;
    });
    pipe.put('a');
    EXPECT_TRUE(run_until(loop, [&] { return second == 1; }));
    EXPECT_EQ(first, 0);
}

TEST(Loop, CallsAWriterWhileItsPipeTakesBytesAndLeavesItBlocking) {
    Loop loop;
    const Pipe pipe;
    ::fcntl(pipe.write.get(), F_SETPIPE_SZ, 4096);
    const std::string page(4096, 'x');
    int calls = 0;
    const auto watch = loop.watch_writable(pipe.write.get(), [&] {
        EXPECT_EQ(::write(pipe.write.get(), page.data(), page.size()), 4096);
        ++calls;
    });
    EXPECT_TRUE(run_until(loop, [&] { return calls == 1; }));
    run_for(loop, 5ms);
    EXPECT_EQ(calls, 1) << "the pipe is full";
    EXPECT_EQ(::fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK, 0);
    std::string taken(4096, ' ');
    EXPECT_EQ(::read(pipe.read.get(), taken.data(), taken.size()), 4096);
    EXPECT_TRUE(run_until(loop, [&] { return calls == 2; }));
}

TEST(Loop, AWriterIsCalledAgainWhileThereIsRoomAndMayEndItself) {
    Loop loop;
    const Pipe pipe;
    int calls = 0;
    std::unique_ptr<Watch> watch;
    watch = loop.watch_writable(pipe.write.get(), [&] {
        if (++calls == 3) {
            watch.reset();
        }
    });
    EXPECT_TRUE(run_until(loop, [&] { return calls == 3; }));
    run_for(loop, 5ms);
    EXPECT_EQ(calls, 3);
    pipe.put('a');
    EXPECT_EQ(pipe.take(), 'a');
}

TEST(Loop, AWriterHearsThatItsReaderHasGone) {
    Loop loop;
    Pipe pipe;
    const std::string much(65536, 'x');
    ASSERT_EQ(::write(pipe.write.get(), much.data(), much.size()), 65536);
    int calls = 0;
    std::unique_ptr<Watch> watch = loop.watch_writable(pipe.write.get(), [&] {
        ++calls;
        watch.reset();
    });
    run_for(loop, 5ms);
    EXPECT_EQ(calls, 0);
    pipe.read.reset();
    EXPECT_TRUE(run_until(loop, [&] { return calls == 1; }));
}

TEST(Loop, ARegularFileAlwaysTakesBytes) {
    Loop loop;
    const os::Fd file(::open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_TRUE(file);
    int calls = 0;
    const auto watch = loop.watch_writable(file.get(), [&] { ++calls; });
    EXPECT_TRUE(run_until(loop, [&] { return calls > 2; }));
}

TEST(Loop, TheAlarmComesAtItsTimeAndOnce) {
    Loop loop;
    const Instant due = os::now() + 20ms;
    Instant fired{};
    int calls = 0;
    loop.set_alarm(due, [&] {
        fired = os::now();
        ++calls;
        loop.set_alarm(os::now() + 10ms, [&] { loop.stop(); });
    });
    loop.run();
    EXPECT_GE(fired, due);
    EXPECT_LT(fired, due + 5s);
    EXPECT_EQ(calls, 1);
}

TEST(Loop, AnInstantInThePastIsDueAtOnce) {
    Loop loop;
    for (const Instant when : {Instant{}, Instant{Duration{-5}}, os::now() - 1s}) {
        bool fired = false;
        loop.set_alarm(when, [&] {
            fired = true;
            loop.stop();
        });
        loop.run();
        EXPECT_TRUE(fired);
    }
}

TEST(Loop, ThereIsOneAlarm) {
    Loop loop;
    std::string order;
    loop.set_alarm(os::now() + 1ms, [&] { order += 'a'; });
    loop.set_alarm(os::now() + 20ms, [&] {
        order += 'b';
        loop.stop();
    });
    loop.run();
    EXPECT_EQ(order, "b");
}

TEST(Loop, TheSameInstantWithAnotherCallbackCallsTheLatter) {
    Loop loop;
    const Instant when = os::now() + 5ms;
    std::string order;
    loop.set_alarm(when, [&] { order += 'a'; });
    loop.set_alarm(when, [&] {
        order += 'b';
        loop.stop();
    });
    loop.run();
    EXPECT_EQ(order, "b");
}

TEST(Loop, ADisarmedAlarmIsSilent) {
    Loop loop;
    bool fired = false;
    loop.set_alarm(os::now() + 1ms, [&] { fired = true; });
    loop.set_alarm(std::nullopt, nullptr);
    const Pipe pipe;
    pipe.put('a');
    int turns = 0;
    const auto watch = loop.watch_readable(pipe.read.get(), [&] {
        if (++turns == 100) {
            loop.stop();
        }
    });
    const Instant past_it = os::now() + 3ms;
    do {
        turns = 0;
        loop.run();
    } while (os::now() < past_it);
    EXPECT_FALSE(fired);
}

TEST(Loop, AnAlarmDisarmedByACallbackOfTheSameTurnIsSilent) {
    Loop loop;
    bool fired = false;
    loop.set_alarm(os::now() - 1s, [&] { fired = true; });  // due already
    loop.post([&] { loop.set_alarm(std::nullopt, nullptr); });
    loop.post([&] { loop.post([&] { loop.post([&] { loop.stop(); }); }); });
    loop.run();
    run_for(loop, 3ms);
    EXPECT_FALSE(fired);
}

TEST(Loop, PostedCallsRunInOrderAndNeverFromWithinPost) {
    Loop loop;
    std::string order;
    loop.post([&] {
        loop.post([&] {
            order += 'c';
            loop.stop();
        });
        order += 'a';
    });
    loop.post([&] { order += 'b'; });
    EXPECT_EQ(order, "");
    loop.run();
    EXPECT_EQ(order, "abc");
}

TEST(Loop, StopEndsAfterTheCurrentCallbackAndRunGoesOnLater) {
    Loop loop;
    std::string order;
    loop.post([&] {
        loop.stop();
        order += 'a';
    });
    loop.post([&] {
        order += 'b';
        loop.stop();
    });
    loop.run();
    EXPECT_EQ(order, "a");
    loop.run();
    EXPECT_EQ(order, "ab");
}

TEST(Loop, AStopBeforeRunCounts) {
    Loop loop;
    loop.stop();
    loop.run();  // returns
    bool ran = false;
    loop.post([&] {
        ran = true;
        loop.stop();
    });
    loop.run();
    EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace ddl::net
