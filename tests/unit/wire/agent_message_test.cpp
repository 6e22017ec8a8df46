#include "wire/agent_message.hpp"

#include <string>

#include <gmock/gmock.h>

#include "unit/wire/agent_message_samples.hpp"

namespace ddl::wire {
namespace {

using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

std::string framed(const std::string& json) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) {
        bytes.push_back(static_cast<char>((json.size() >> shift) & 0xFFU));
    }
    return bytes + json;
}

Result<std::optional<Message>> read(const std::string& bytes) {
    MessageReader reader;
    reader.feed(bytes);
    return reader.next();
}

std::string error_of(const std::string& json) {
    const auto message = read(framed(json));
    return message ? "(no error)" : message.error().message;
}

template <class T>
T read_as(const std::string& bytes) {
    const auto message = read(bytes);
    EXPECT_TRUE(message.has_value() && message->has_value());
    return message && *message && std::holds_alternative<T>(**message) ? std::get<T>(**message) : T{};
}

std::string text_of(const Message& message) {
    return encode(message).substr(4);
}

// ---- bytes ------------------------------------------------------------------------------------------------------

class EveryMessage : public ::testing::TestWithParam<std::size_t> {
protected:
    [[nodiscard]] static Message sample() {
        return sample_messages().at(GetParam());
    }
};

TEST_P(EveryMessage, SurvivesItsBytes) {
    const auto message = read(encode(sample()));
    ASSERT_TRUE(message.has_value() && message->has_value());
    EXPECT_EQ(**message, sample());
}

TEST_P(EveryMessage, ArrivesByteByByte) {
    MessageReader reader;
    const std::string bytes = encode(sample());
    for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
        reader.feed(bytes.substr(i, 1));
        const auto early = reader.next();
        ASSERT_TRUE(early.has_value());
        ASSERT_FALSE(early->has_value()) << "after byte " << i;
    }
    reader.feed(bytes.substr(bytes.size() - 1));
    const auto message = reader.next();
    ASSERT_TRUE(message.has_value() && message->has_value());
    EXPECT_EQ(**message, sample());
    EXPECT_EQ(reader.next().value(), std::nullopt);
}

TEST_P(EveryMessage, IgnoresFieldsItDoesNotKnow) {
    std::string text = text_of(sample());
    text.insert(1, R"("a_later_field":{"deep":[1,2,{"x":null}]},)");
    const auto message = read(framed(text));
    ASSERT_TRUE(message.has_value() && message->has_value());
    EXPECT_EQ(**message, sample());
}

TEST_P(EveryMessage, IsRefusedWhenCutShort) {
    const std::string text = text_of(sample());
    for (const std::size_t keep : {text.size() - 1, text.size() / 2, std::size_t{1}}) {
        EXPECT_EQ(error_of(text.substr(0, keep)), "agent message is not a JSON object");
    }
}

INSTANTIATE_TEST_SUITE_P(All, EveryMessage, ::testing::Range(std::size_t{0}, std::variant_size_v<Message>),
                         [](const auto& param) {
                             const std::string text = text_of(sample_messages().at(param.param));
                             const std::size_t at = text.find(R"("type":")") + 8;
                             return text.substr(at, text.find('"', at) - at);
                         });

TEST(AgentMessage, ThereIsASampleOfEachType) {
    const std::vector<Message> samples = sample_messages();
    ASSERT_THAT(samples, SizeIs(std::variant_size_v<Message>));
    for (std::size_t i = 0; i < samples.size(); ++i) {
        EXPECT_EQ(samples[i].index(), i);
    }
}

TEST(AgentMessage, LeavingHasTheseBytes) {
    EXPECT_EQ(encode(Leaving{15}), framed(R"({"signal":15,"type":"leaving"})"));
}

TEST(AgentMessage, OptionalRanksMayBeAbsent) {
    Hello hello = sample_hello();
    hello.node.requested_rank.reset();
    hello.node.scheduler_order.reset();
    EXPECT_EQ(read_as<Hello>(encode(hello)), hello);
    EXPECT_THAT(text_of(hello), HasSubstr(R"("requested_rank":null)"));
}

TEST(AgentMessage, AllNamesOfEnumerationsSurvive) {
    for (const DeathKind kind :
         {DeathKind::kExited, DeathKind::kSignalled, DeathKind::kStartFailed, DeathKind::kNodeLost}) {
        Failed failed{{0, 1}, sample_death()};
        failed.death.kind = kind;
        EXPECT_EQ(read_as<Failed>(encode(failed)), failed);
    }
    for (const StopReason reason : {StopReason::kFailure, StopReason::kMembership}) {
        EXPECT_EQ(read_as<Stop>(encode(Stop{{0, 1}, reason, ""})).reason, reason);
    }
    for (const ExitOrigin origin : {ExitOrigin::kSuccess, ExitOrigin::kWorker, ExitOrigin::kLauncher}) {
        EXPECT_EQ(read_as<JobOver>(encode(JobOver{1, origin, "", {}, 0})).origin, origin);
    }
}

TEST(AgentMessage, TextThatIsNotUtf8IsMadeSo) {
    Notice notice{"bad \xFF byte"};
    EXPECT_EQ(read_as<Notice>(encode(notice)).text, "bad \xEF\xBF\xBD byte");
}

// ---- streams ----------------------------------------------------------------------------------------------------

TEST(MessageReader, TakesSeveralMessagesFromOneSegment) {
    MessageReader reader;
    reader.feed(encode(Leaving{1}) + encode(Leaving{2}) + encode(Leaving{3}).substr(0, 3));
    EXPECT_EQ(reader.next().value(), std::optional<Message>(Leaving{1}));
    EXPECT_EQ(reader.next().value(), std::optional<Message>(Leaving{2}));
    EXPECT_EQ(reader.next().value(), std::nullopt);
    reader.feed(encode(Leaving{3}).substr(3));
    EXPECT_EQ(reader.next().value(), std::optional<Message>(Leaving{3}));
}

TEST(MessageReader, KeepsItsPlaceOverSegmentsThatNeverEndWithAMessage) {
    MessageReader reader;
    const std::string one = encode(Notice{std::string(1000, 'x')});
    std::string stream;
    for (int i = 0; i < 200; ++i) {
        stream += one;
    }
    std::size_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += 777) {
        reader.feed(stream.substr(at, 777));
        for (auto message = reader.next(); message.value(); message = reader.next()) {
            EXPECT_EQ(**message, Message(Notice{std::string(1000, 'x')}));
            ++seen;
        }
    }
    EXPECT_EQ(seen, 200U);
}

TEST(MessageReader, NeedsNothingForNothing) {
    MessageReader reader;
    EXPECT_EQ(reader.next().value(), std::nullopt);
    reader.feed("");
    EXPECT_EQ(reader.next().value(), std::nullopt);
}

TEST(MessageReader, RefusesALengthOverTheLimitBeforeTheBytesCome) {
    const auto message = read(std::string("\x01\x00\x04\x00", 4));
    ASSERT_FALSE(message.has_value());
    EXPECT_EQ(message.error().message, "agent message of 262145 bytes; the limit is 262144");
    EXPECT_FALSE(read("\xFF\xFF\xFF\xFF").has_value());
}

TEST(MessageReader, AcceptsALengthAtTheLimit) {
    std::string text = text_of(Leaving{15});
    text += std::string(kMaxMessageBytes - text.size(), ' ');
    EXPECT_EQ(read_as<Leaving>(framed(text)), Leaving{15});
}

// ---- bad input --------------------------------------------------------------------------------------------------

TEST(AgentMessage, RefusesWhatIsNoObject) {
    for (const char* text : {"", "null", "[]", "3", "\"leaving\"", "{", "{}}", "\xFF\xFE", "{\"type\":\"leav\xFFing\"}",
                             "nan", "{'type':'leaving'}"}) {
        EXPECT_EQ(error_of(text), "agent message is not a JSON object") << text;
    }
}

TEST(AgentMessage, RefusesTypesThatItDoesNotKnow) {
    EXPECT_EQ(error_of("{}"), "agent message of unknown type (none)");
    EXPECT_EQ(error_of(R"({"type":3})"), "agent message of unknown type (none)");
    EXPECT_EQ(error_of(R"({"type":"Leaving","signal":15})"), "agent message of unknown type Leaving");
    EXPECT_THAT(error_of(R"({"type":")" + std::string(5000, 'x') + R"("})"), SizeIs(Le(100U)));
}

struct BadField {
    const char* json;
    const char* error;
};

TEST(AgentMessage, NamesTheFieldThatIsMissingOrWrong) {
    const BadField kCases[] = {
        {R"({"type":"leaving"})", "agent message leaving: field signal is missing"},
        {R"({"type":"leaving","signal":"15"})", "agent message leaving: field signal has a bad value"},
        {R"({"type":"leaving","signal":1.5})", "agent message leaving: field signal has a bad value"},
        {R"({"type":"leaving","signal":true})", "agent message leaving: field signal has a bad value"},
        {R"({"type":"leaving","signal":null})", "agent message leaving: field signal has a bad value"},
        {R"({"type":"leaving","signal":2147483648})", "agent message leaving: field signal has a bad value"},
        {R"({"type":"leaving","signal":18446744073709551615})", "agent message leaving: field signal has a bad value"},
        {R"({"type":"welcome","job_id":"j","term":-1})", "agent message welcome: field term has a bad value"},
        {R"({"type":"welcome","job_id":7,"term":1})", "agent message welcome: field job_id has a bad value"},
        {R"({"type":"finished","generation":5})", "agent message finished: field generation has a bad value"},
        {R"({"type":"finished","generation":{"term":1}})", "agent message finished: field counter is missing"},
        {R"({"type":"finished","generation":{"term":1,"counter":4294967296}})",
         "agent message finished: field counter has a bad value"},
        {R"({"type":"ready","ended":{"term":0,"counter":0},"store_port":65536,"deaths":[]})",
         "agent message ready: field store_port has a bad value"},
        {R"({"type":"ready","ended":{"term":0,"counter":0},"store_port":1,"deaths":{}})",
         "agent message ready: field deaths has a bad value"},
        {R"({"type":"ready","ended":{"term":0,"counter":0},"store_port":1,"deaths":[{}]})",
         "agent message ready: field kind is missing"},
        {R"({"type":"ready","ended":{"term":0,"counter":0},"store_port":1,"deaths":[7]})",
         "agent message ready: field deaths has a bad value"},
        {R"({"type":"stop","generation":{"term":0,"counter":1},"reason":"boredom","why":""})",
         "agent message stop: field reason has a bad value"},
        {R"({"type":"stop","generation":{"term":0,"counter":1},"reason":0,"why":""})",
         "agent message stop: field reason has a bad value"},
    };
    for (const BadField& wrong : kCases) {
        EXPECT_EQ(error_of(wrong.json), wrong.error) << wrong.json;
    }
}

TEST(AgentMessage, EveryFieldOfEveryMessageIsNeeded) {
    for (const Message& sample : sample_messages()) {
        const std::string text = text_of(sample);
        for (std::size_t at = text.find("\":"); at != std::string::npos; at = text.find("\":", at + 1)) {
            std::string renamed = text;
            renamed.insert(at, "_");
            EXPECT_FALSE(read(framed(renamed)).has_value()) << renamed;
        }
    }
}

TEST(AgentMessage, NestingDoesNotOverflowTheStack) {
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    EXPECT_EQ(read_as<Leaving>(framed(R"({"type":"leaving","signal":15,"x":)" + deep + "}")), Leaving{15});
    EXPECT_EQ(error_of(std::string(200'000, '[')), "agent message is not a JSON object");
}

// ---- limits on what is written ----------------------------------------------------------------------------------

Death long_death(int rank) {
    Death death = sample_death();
    death.rank = rank;
    death.message = std::string(100'000, 'm');
    death.stderr_tail.clear();
    for (int i = 0; i < 100; ++i) {
        death.stderr_tail.push_back("line " + std::to_string(i) + " " + std::string(10'000, 'x'));
    }
    return death;
}

TEST(AgentMessage, KeepsTheLastLinesOfAnOverlongTail) {
    const auto failed = read_as<Failed>(encode(Failed{{0, 1}, long_death(0)}));
    ASSERT_THAT(failed.death.stderr_tail, SizeIs(kMaxStderrTailLines));
    EXPECT_THAT(failed.death.stderr_tail.front(), HasSubstr("line 80 "));
    EXPECT_THAT(failed.death.stderr_tail.back(), HasSubstr("line 99 "));
    EXPECT_THAT(failed.death.stderr_tail, Each(SizeIs(kMaxLineBytes)));
    EXPECT_THAT(failed.death.stderr_tail, Each(EndsWith("...")));
    EXPECT_THAT(failed.death.message, EndsWith("..."));
}

TEST(AgentMessage, LeavesTextsWithinTheLimitsAlone) {
    Failed failed{{0, 1}, sample_death()};
    failed.death.stderr_tail.assign(kMaxStderrTailLines, std::string(kMaxLineBytes, 'x'));
    EXPECT_EQ(read_as<Failed>(encode(failed)), failed);
}

TEST(AgentMessage, CutsUntilTheMessageFits) {
    Ready ready{{0, 1}, 1, {}};
    JobOver over{1, ExitOrigin::kWorker, std::string(300'000, 'w'), {}, 0};
    for (int rank = 0; rank < 200; ++rank) {
        ready.deaths.push_back(long_death(rank));
        over.deaths.push_back(long_death(rank));
    }
    for (const std::string& bytes : {encode(ready), encode(over)}) {
        EXPECT_THAT(bytes, SizeIs(Le(kMaxMessageBytes + 4)));
    }
    const auto read_ready = read_as<Ready>(encode(ready));
    ASSERT_FALSE(read_ready.deaths.empty());
    EXPECT_EQ(read_ready.deaths.front().rank, 0);
    EXPECT_EQ(read_as<JobOver>(encode(over)).deaths.front().rank, 0);
}

TEST(AgentMessage, FitsEvenWhereEachByteIsWrittenAsSix) {
    JobOver over{1, ExitOrigin::kWorker, std::string(300'000, '\x01'), {}, 0};
    for (int rank = 0; rank < 50; ++rank) {
        over.deaths.push_back(long_death(rank));
        for (std::string& line : over.deaths.back().stderr_tail) {
            line.assign(10'000, '\x01');
        }
    }
    const std::string bytes = encode(over);
    EXPECT_THAT(bytes, SizeIs(Le(kMaxMessageBytes + 4)));
    EXPECT_EQ(read_as<JobOver>(bytes).deaths.front().rank, 0);
}

TEST(AgentMessage, OneLineTextsAreCutToo) {
    const std::string huge(500'000, 'x');
    EXPECT_THAT(read_as<Notice>(encode(Notice{huge})).text, EndsWith("x..."));
    EXPECT_THAT(read_as<Refused>(encode(Refused{huge})).reason, EndsWith("x..."));
    EXPECT_THAT(read_as<Stop>(encode(Stop{{0, 1}, StopReason::kFailure, huge})).why, EndsWith("x..."));
}

TEST(AgentMessage, LeavesOutAddressesOverTheLimit) {
    Hello hello = sample_hello();
    hello.node.addresses.assign(100, "fd00::1");
    EXPECT_THAT(read_as<Hello>(encode(hello)).node.addresses, SizeIs(kMaxAddresses));
}

}  // namespace
}  // namespace ddl::wire
