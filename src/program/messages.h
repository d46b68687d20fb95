// The messages between pipeline ranks, as one rank sees them: which peer takes up what in which order, and what a
// message from a peer says about those sent to it. Follows from the table alone, so both ends agree.
//
// A forward sends to the rank of the next stage, a backward or input gradient to that of the stage before; nothing is
// sent where both stages lie on one rank. Cost: O(work of the table) to build, O(log) a question.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "program/op.h"
#include "program/schedule_table.h"

namespace atl {

class Messages {
  public:
    Messages(const ScheduleTable& table, std::int32_t rank);

    // Announces one send op of this work; its message may have several.
    void expect_send(const Work& work);
    // The work's send op is ready. Returns the send ops that may now be issued: those whose message is the next that
    // the peer takes up.
    std::vector<OpId> send(const Work& work, OpId op);
    bool all_sent() const;

    // The newest of the issued sends that the peer had taken up before it did what `work` here waits for; none if there
    // is no such send.
    std::optional<OpId> send_proven_received_by(const Work& work) const;

  private:
    struct Outgoing {
        Work work;                  // here
        std::size_t taken_up_slot;  // there
        std::vector<OpId> ready;
        std::size_t expected = 0;
    };
    struct Peer {
        std::vector<Outgoing> outgoing;  // in the order in which the peer takes them up
        std::size_t issued = 0;
        std::map<Work, std::size_t> incoming;  // what it makes for this rank: in which of its slots
    };

    Outgoing& outgoing(const Work& work);

    const PipelineShape pipeline_;
    const std::int32_t rank_;
    std::vector<Peer> peers_;
};

}  // namespace atl
